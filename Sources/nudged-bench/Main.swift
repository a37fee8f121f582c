import Glibc

@main
struct Main {
  static func main() {
    // A peer that goes away is an error of write(2), not the end.
    signal(SIGPIPE, SIG_IGN)
    do {
      switch try Options.read(CommandLine.arguments.dropFirst()) {
      case .show(let text): print(text)
      case .run(let options): try measure(options)
      }
    } catch {
      say("\(error)")
      exit(1)
    }
  }

  private static func measure(_ options: Options) throws {
    let bench = try Bench(options)
    defer { bench.close() }
    print(try Machine.words(bench))
    var table = Table()
    for measurement in options.only {
      say("\(measurement.name): \(measurement.summary)")
      let lines = try measurement.run(bench)
      // The whole may take half an hour.
      for line in lines { say(line.cells.filter { !$0.isEmpty }.joined(separator: "; ")) }
      table.lines += lines
    }
    print(table.text)
    if options.checks, !table.lines.allSatisfy(\.isReached) { throw Trouble("not all is as it should be") }
  }

  private static func say(_ words: String) {
    let line = "nudged-bench: \(words)\n"
    write(STDERR_FILENO, line, line.utf8.count)
  }
}
