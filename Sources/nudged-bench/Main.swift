import Glibc

@main
struct Main {
  static func main() {
    if CommandLine.arguments.contains("--help") {
      print(Options.help)
      return
    }
    do {
      let bench = try Bench(try Options(CommandLine.arguments.dropFirst()))
      defer { bench.removeFolder() }
      try bench.run()
    } catch {
      let line = "nudged-bench: \(error)\n"
      write(STDERR_FILENO, line, line.utf8.count)
      exit(1)
    }
  }
}
