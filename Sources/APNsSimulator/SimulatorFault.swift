/// Why the simulator cannot go on, in words for the person who has to act on it.
package struct SimulatorFault: Error, CustomStringConvertible, Sendable, Equatable {
  /// The exit code, as in sysexits.h.
  package enum Code: Int32, Sendable {
    case usage = 64
    case inputOutput = 74
    case configuration = 78
  }

  package let code: Code
  package let description: String

  package init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }
}
