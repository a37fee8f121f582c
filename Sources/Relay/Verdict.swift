import APNs
import Outbox

// What an answer means: for its attempt, for the host that gave it, and for what is claimed next.
// The pauses of the design stand here, each in the case of the answer that begins it.

extension Wheel {
  /// Draws the conclusions from the end of one push; its outcome is kept until it is settled.
  func conclude(_ end: PushEnd, on link: Link) {
    guard let entry = dispatch.inFlight.remove(end.tag) else { return }
    link.inFlight -= 1
    let host = dispatch.hosts[entry.host]
    let answer = end.answer
    let finish = finish(end, entry, host)
    let outcome = finish.outcome
    finishes.append(finish)
    notify.tally.count(outcome)
    if answer.status == nil {
      judgeSilence(end, entry, link, host)
    } else {
      link.hasAnswered = true
      judge(answer, entry, link, host)
    }
    if outcome != .accepted {
      log.debug(
        "attempt ended",
        [
          "nudge": "\(entry.nudge)", "attempt": "\(entry.attempt)", "host": host.name,
          "outcome": outcome.rawValue, "status": answer.status.map(String.init) ?? "-",
          "reason": answer.reason ?? "-",
        ])
    }
  }

  /// The attempt's end as the outbox writes it.
  private func finish(_ end: PushEnd, _ entry: InFlight, _ host: Host) -> Finish {
    let answer = end.answer
    let outcome: Outcome =
      switch answer.meaning {
      case .accepted: .accepted
      case .rejected: .rejected
      case .deadToken: .deadToken
      case .wrongHost: .wrongHost
      case .silence: end.isProvablyUnprocessed ? .unsent : .unanswered
      }
    let teaches = outcome == .deadToken || outcome == .wrongHost || (outcome == .accepted && !entry.isProven)
    let finish = Finish(
      attempt: entry.attempt, nudge: entry.nudge, apnsID: [], outcome: outcome,
      environment: host.environment.rawValue, startedAt: entry.startedAt, finishedAt: clock.wall(),
      status: answer.status, reason: answer.reason, timestampAt: answer.timestampMilliseconds,
      uniqueID: answer.uniqueID,
      token: Finish.Token(
        id: entry.tokenID, digits: teaches ? end.token : "", registeredAt: entry.registeredAt,
        environment: entry.environment, isProven: entry.isProven))
    if finish.isPlain { return finish }
    var named = finish
    entry.apnsID.append(to: &named.apnsID)
    return named
  }

  private func judge(_ answer: Answer, _ entry: InFlight, _ link: Link, _ host: Host) {
    let consequences = answer.consequences
    if consequences.contains(.provesConnection) {
      if !link.isProven { host.growthPause.end(since: link.began) }
      link.isProven = true
      if host.prove(since: entry.started) { log.notice("host works again", ["host": host.name]) }
    }
    guard consequences != .provesConnection else { return }
    let reason = answer.reason ?? "status \(answer.status ?? 0)"
    if consequences.contains(.credentialsRefused) {
      refused(answer, reason: reason, entry, host)
    }
    if consequences.contains(.tooManyProviderTokenUpdates) {
      link.connection.retire()
      if let length = host.signer.throttlePause.report(since: entry.started, now: now) {
        for other in dispatch.hosts where other.signer === host.signer {
          other.isProbing = true
          other.trouble = reason
        }
        log.error(
          "provider token throttled",
          ["host": host.name, "reason": reason, "pause": "\(length.milliseconds)ms"])
      }
    }
    if consequences.contains(.serverError) {
      host.troubles.serverErrors += 1
      judgeTroubles(reason, since: entry.started, link, host)
    }
    if consequences.contains(.connectionClosing) {
      // One that closes is no trouble, but a host whose every connection closes at its first request is.
      if !link.isProven {
        host.troubles.serverErrors += 1
        judgeTroubles(reason, since: entry.started, link, host)
      }
      link.connection.retire()
    }
    if consequences.contains(.tooManyRequests) { throttledAttempts.append(entry.attempt) }
    if consequences.contains(.topicRefused) {
      let key = Dispatch.HostTopic(host: entry.host, topic: entry.topic)
      if dispatch.pausedTopics.updateValue(now + .seconds(300), forKey: key) == nil {
        log.error(
          "topic refused: check the devices' topic against the key's team and topics",
          [
            "host": host.name, "topic": String(decoding: dispatch.topics[entry.topic], as: UTF8.self),
            "reason": reason, "pause": "5m",
          ])
      }
    }
  }

  /// 403: the host refuses our credentials. Nothing is learned about any device token.
  private func refused(_ answer: Answer, reason: String, _ entry: InFlight, _ host: Host) {
    if answer.consequences.contains(.badEnvironmentKey) { host.refusesKeyEnvironment = true }
    if answer.consequences.contains(.expiredProviderToken),
      host.signer.token.expired(generation: entry.keyGeneration, now: now)
    {
      // A fresh one will be minted; connections that used the old one stay stuck with it.
      for other in dispatch.hosts where other.signer === host.signer {
        for link in other.links where link.keyGeneration == entry.keyGeneration { link.retire() }
      }
      log.warning("provider token expired: a new one is signed", ["host": host.name])
      return
    }
    guard let length = host.refusalPause.report(since: entry.started, now: now) else { return }
    host.isProbing = true
    host.trouble = reason
    host.retireAll()
    log.error(
      "host refuses our credentials: check key, key id and team id",
      [
        "host": host.name, "reason": reason, "file": host.signer.file,
        "pause": "\(length.milliseconds)ms",
      ])
  }

  private func judgeSilence(_ end: PushEnd, _ entry: InFlight, _ link: Link, _ host: Host) {
    // Streams that a GOAWAY or a closed connection ended are no trouble of their own.
    guard link.connection.phase == .open else { return }
    if end.hasTimedOut {
      host.troubles.timeouts += 1
      judgeTroubles("no answer in time", since: entry.started, link, host)
    } else if end.isRefused {
      host.troubles.refusals += 1
      judgeTroubles("stream refused", since: entry.started, link, host)
    } else if end.isReset {
      host.troubles.serverErrors += 1
      judgeTroubles("stream reset", since: entry.started, link, host)
    }
  }

  /// Three in a row, of one kind or of several, are no chance any more.
  private func judgeTroubles(
    _ last: String, since: ContinuousClock.Instant, _ link: Link, _ host: Host
  ) {
    let (serverErrors, timeouts, refusals) = host.troubles
    guard serverErrors + timeouts + refusals >= Wheel.mostTroubles else { return }
    trouble("three failures in a row, the last: \(last)", since: since, link, host)
  }

  private func trouble(_ words: String, since: ContinuousClock.Instant, _ link: Link, _ host: Host) {
    host.troubles = (0, 0, 0)
    guard let length = host.troublePause.report(since: since, now: now) else { return }
    host.isProbing = true
    host.trouble = words
    link.retire()
    log.error(
      "host fails", ["host": host.name, "reason": words, "pause": "\(length.milliseconds)ms"])
  }

  /// How many failures in a row, with no good answer between, make trouble.
  private static let mostTroubles = 3
}
