import Glibc

// nudged-fuzz TARGET [libFuzzer's arguments]: see `make fuzz`.

/// What is fuzzed, by name.
let targets: [String: (Input) -> Void] = [
  "session": fuzzSession,
  "answer": fuzzAnswer,
  "payload": fuzzPayload,
  "registration": fuzzRegistration,
]

guard CommandLine.arguments.count > 1, let target = targets[CommandLine.arguments[1]] else {
  print("usage: nudged-fuzz \(targets.keys.sorted().joined(separator: "|")) [libFuzzer's arguments]")
  exit(64)
}

/// libFuzzer calls a C function, which captures nothing.
nonisolated(unsafe) private let chosen = target

/// libFuzzer's own loop (FuzzerInterface.h); with it the program keeps its own `main`.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
  _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

// libFuzzer keeps the vector and starts again with it, so it is never freed.
let kept = CommandLine.arguments.enumerated().filter { $0.offset != 1 }.map(\.element)
nonisolated(unsafe) var vector: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? =
  .allocate(capacity: kept.count + 1)
for (index, argument) in kept.enumerated() { vector?[index] = strdup(argument) }
vector?[kept.count] = nil
var count = Int32(kept.count)
let body: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32 = { start, count in
  chosen(Input(Array(UnsafeBufferPointer(start: start, count: count))))
  return 0
}
exit(withUnsafeMutablePointer(to: &vector) { runDriver(&count, $0, body) })
