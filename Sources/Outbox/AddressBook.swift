import SQLite

/// The devices that claims have read, by the question that they answer.
///
/// An answer holds while a claim is decided. It still holds in the next claim if there, in the claim's own
/// transaction, `pragma data_version` says that nobody else has committed since, which is what SQLite's own cache of
/// pages goes by (https://www.sqlite.org/pragma.html#pragma_data_version), and if this connection has changed no
/// token meanwhile. Whoever owns the book calls `forget` where one of these is not so.
struct AddressBook {
  /// The most devices of one answer; with so many there may be more behind them.
  static let page = 16
  /// The most devices, and the most answers, that are kept.
  private static let capacity = 2048

  /// The devices of all answers, one behind the other. Their memory is used again.
  private var targets: [Target] = []
  private var answers: [Answer] = []
  private var answerCount = 0
  /// Where the devices of the next answer begin.
  private var end = 0
  /// The devices of the answer that is open.
  private var opened = 0..<0
  /// The answers by the hash of their question, each in the first place that was free; -1 where there is none.
  private var places = [Int32](repeating: -1, count: 2 * capacity)
  /// Whether there is an answer that the claim itself makes untrue.
  private var isFleeting = false

  private struct Answer {
    var statement: Statement?
    var question = Texts()
    var range = 0..<0
  }

  /// How many devices the open answer has.
  var count: Int { opened.count }

  /// A device of the open answer.
  subscript(position: Int) -> Target { targets[opened.lowerBound + position] }

  /// Opens the answer to a statement with what is bound to it, if it is known.
  mutating func open(_ statement: Statement, _ question: borrowing Texts) -> Bool {
    let answer = Int(places[place(of: statement, question)])
    guard answer >= 0 else { return false }
    opened = answers[answer].range
    return true
  }

  /// The place of the answer to a question, or the free one where it would stand.
  private func place(of statement: Statement, _ question: borrowing Texts) -> Int {
    var place = question.hash % places.count
    while places[place] >= 0 {
      let answer = Int(places[place])
      if answers[answer].statement === statement, answers[answer].question.isEqual(to: question) { break }
      place = (place + 1) % places.count
    }
    return place
  }

  /// Opens a new answer without any device yet.
  mutating func begin() {
    if answerCount == AddressBook.capacity || end > AddressBook.capacity - AddressBook.page { forget() }
    opened = end..<end
  }

  /// Adds a device to the new answer.
  mutating func append(_ row: Statement, ofActivity: Bool, by dispatcher: any Dispatcher) {
    if opened.upperBound == targets.count { targets.append(Target()) }
    targets[opened.upperBound].read(row, ofActivity: ofActivity, by: dispatcher)
    opened = opened.lowerBound..<opened.upperBound + 1
  }

  /// Keeps the new answer, all of whose devices are read; the question's memory is exchanged for older one.
  ///
  /// - Parameter isFleeting: what the claim writes may concern it, so that the next one must not find it.
  mutating func keep(_ statement: Statement, _ question: inout Texts, isFleeting: Bool) {
    places[place(of: statement, question)] = Int32(answerCount)
    if answerCount == answers.count { answers.append(Answer()) }
    answers[answerCount].statement = statement
    swap(&answers[answerCount].question, &question)
    answers[answerCount].range = opened
    answerCount += 1
    end = opened.upperBound
    if isFleeting { self.isFleeting = true }
  }

  /// Begins a claim.
  mutating func begin(isUnchanged: Bool) {
    if !isUnchanged || isFleeting { forget() }
  }

  /// Forgets every answer.
  mutating func forget() {
    guard answerCount > 0 else { return }
    for place in places.indices { places[place] = -1 }
    answerCount = 0
    end = 0
    isFleeting = false
  }
}
