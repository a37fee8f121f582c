/// What callgrind counted (https://valgrind.org/docs/manual/cl-format.html).
struct Profile {
  private(set) var instructions = 0
  /// Calls of the C library's functions that allocate.
  private(set) var allocations = 0

  private static let allocators: Set<Substring> = [
    "malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc",
  ]

  init(_ text: String) {
    // A function is named once, `(4) malloc`, and is `(4)` from then on.
    var allocating: Set<Substring> = []
    var called: Substring = ""
    for line in text.split(separator: "\n") {
      guard let sign = line.firstIndex(where: { $0 == "=" || $0 == ":" }) else { continue }
      let (key, value) = (line[..<sign], line[line.index(after: sign)...])
      switch key {
      case "totals": instructions = value.split(separator: " ").first.flatMap { Int($0) } ?? 0
      case "fn", "cfn":
        let words = value.split(separator: " ", maxSplits: 1)
        // Of a function that calls itself, `malloc'2` is the inner call.
        if words.count == 2, Self.allocators.contains(words[1].prefix { $0 != "'" }) {
          allocating.insert(words[0])
        }
        if key == "cfn" { called = words.first ?? "" }
      case "calls" where allocating.contains(called):
        allocations += value.split(separator: " ").first.flatMap { Int($0) } ?? 0
      default: break
      }
    }
  }
}
