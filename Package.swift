// swift-tools-version: 6.3
import PackageDescription

// The arrows of the architecture. `scripts/check-imports` holds every `import` in the tree against them.

/// The wrappers around C: unsafe constructs have to be marked where they stand.
let wrapper: [SwiftSetting] = [
  .strictMemorySafety(), .enableExperimentalFeature("Lifetimes"),
]

/// Below the relay, bytes are handed on as spans of SQLite's own memory.
let borrowing: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")]

let package = Package(
  name: "nudged",
  products: [
    .executable(name: "nudged", targets: ["nudged"]),
    .executable(name: "apns-simulator", targets: ["apns-simulator"]),
  ],
  targets: [
    .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CNghttp2", providers: [.apt(["libnghttp2-dev"])]),
    .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CLinux"),

    .target(name: "SQLite", dependencies: ["CSQLite"], swiftSettings: wrapper),
    .target(name: "OpenSSL", dependencies: ["COpenSSL"], swiftSettings: wrapper),
    .target(
      name: "HTTP2", dependencies: ["CNghttp2", "CLinux", "OpenSSL"], swiftSettings: wrapper),
    .target(name: "APNs", dependencies: ["HTTP2", "OpenSSL"], swiftSettings: borrowing),
    .target(
      name: "Outbox", dependencies: ["SQLite", "CLinux"],
      resources: [.embedInCode("migrations")], swiftSettings: borrowing),
    .target(
      name: "Relay", dependencies: ["Outbox", "APNs", "CLinux"], swiftSettings: borrowing),
    .executableTarget(name: "nudged", dependencies: ["Relay", "Outbox", "CLinux"]),
    .target(name: "APNsSimulator", dependencies: ["APNs", "HTTP2", "OpenSSL", "SQLite", "CLinux"]),
    .executableTarget(name: "apns-simulator", dependencies: ["APNsSimulator", "CLinux"]),
    .executableTarget(
      name: "nudged-bench",
      dependencies: ["APNsSimulator", "HTTP2", "OpenSSL", "Outbox", "SQLite", "CLinux"]),

    .testTarget(name: "SQLiteTests", dependencies: ["SQLite"]),
    .testTarget(name: "OpenSSLTests", dependencies: ["OpenSSL"]),
    .testTarget(name: "HTTP2Tests", dependencies: ["HTTP2", "OpenSSL", "CLinux"]),
    .testTarget(name: "APNsTests", dependencies: ["APNs", "HTTP2", "OpenSSL"]),
    .testTarget(name: "OutboxTests", dependencies: ["Outbox", "SQLite"]),
    .testTarget(name: "RelayTests", dependencies: ["Relay", "Outbox", "APNs"]),
    .testTarget(name: "nudgedTests", dependencies: ["nudged", "Relay", "Outbox", "SQLite"]),
    .testTarget(name: "nudgedBenchTests", dependencies: ["nudged-bench"]),
    .testTarget(
      name: "APNsSimulatorTests", dependencies: ["APNsSimulator", "APNs", "HTTP2", "OpenSSL", "SQLite"]),
    .testTarget(name: "EndToEndTests", dependencies: ["SQLite"]),
  ],
  swiftLanguageModes: [.v6]
)

// A debug build, and so each test, checks at every access to a class's property that no other one overlaps it;
// the release build leaves out what would be a tenth of the instructions of a nudge.
for target in package.targets where target.type == .regular || target.type == .executable {
  target.swiftSettings =
    (target.swiftSettings ?? [])
    + [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))]
  // Regular expressions, which only the benchmark uses, would be a sixth of the program.
  if target.name != "nudged-bench" {
    target.swiftSettings?.append(
      .unsafeFlags(["-Xfrontend", "-disable-implicit-string-processing-module-import"]))
  }
}

// The fuzzers are linked with libFuzzer, which nothing else is: `make fuzz` builds them apart from everything.
if Context.environment["NUDGED_FUZZ"] != nil {
  package.targets.append(
    .executableTarget(
      name: "nudged-fuzz", dependencies: ["HTTP2", "APNs", "Outbox", "SQLite"], path: "Fuzz/Sources",
      // Swift 6.3.1's optimizer breaks on functions with several `try` under -sanitize=address.
      swiftSettings: [.unsafeFlags(["-Onone"])],
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer"])]))
}
