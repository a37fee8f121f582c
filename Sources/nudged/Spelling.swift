/// Guessing which known name a misspelt one stands for.
enum Spelling {
  /// The known name nearest to `name`, if it is near enough to be meant.
  static func suggestion(for name: String, among known: [String]) -> String? {
    let word = Array(name.lowercased())
    let limit = max(2, word.count / 4)
    return known.map { (distance(word, Array($0.lowercased())), $0) }
      .filter { $0.0 <= limit }
      .min { $0.0 < $1.0 }?.1
  }

  /// How many letters have to be put in, left out, changed or swapped with their neighbour.
  ///
  /// The optimal string alignment distance: row by row through the table of prefixes.
  static func distance(_ left: [Character], _ right: [Character]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for i in left.indices {
      var row = [i + 1]
      for j in right.indices {
        let change = last[j] + (left[i] == right[j] ? 0 : 1)
        var best = min(change, last[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
          best = min(best, beforeLast[j - 1] + 1)
        }
        row.append(best)
      }
      beforeLast = last
      last = row
    }
    return last[right.count]
  }
}
