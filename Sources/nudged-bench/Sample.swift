/// Measured values of one kind.
struct Sample {
  private var values: [Double] = []

  init() {}
  init(_ values: [Double]) { self.values = values }

  mutating func add(_ value: Double) { values.append(value) }

  var median: Double { quantile(0.5) }

  /// The least value that so much of the sample is not above; 0 for an empty one.
  func quantile(_ share: Double) -> Double {
    let sorted = values.sorted()
    guard let last = sorted.indices.last else { return 0 }
    return sorted[min(last, Int((Double(sorted.count) * share).rounded(.down)))]
  }
}
