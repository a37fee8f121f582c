import Testing

@testable import nudged_bench

@Suite struct ProfileTests {
  private let profile = Profile(
    """
    events: Ir
    ob=(1) /usr/bin/nudged
    fn=(1) main
    16 400
    cfn=(2) malloc
    calls=3 0
    17 90
    cfn=(3) mallocate
    calls=5 0
    18 10
    fn=(4) swift_slowAlloc
    cob=(2) /lib/libc.so.6
    cfn=(2)
    calls=7 0
    19 70
    cfn=(5) realloc'2
    calls=1 0
    20 70
    totals: 123456
    """)

  @Test func allInstructionsCount() {
    #expect(profile.instructions == 123_456)
  }

  @Test func aFunctionThatAllocatesIsKnownByItsNumberLater() {
    #expect(profile.allocations == 11)
  }
}
