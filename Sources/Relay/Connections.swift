import APNs

// The connections of every host: dialled where rows wait, proven before a claim relies on them, buried when they
// have closed, and given up when a burst is over.

extension Wheel {
  /// Dials where rows wait, probes what was silent, and buries what has closed.
  func maintainHosts() {
    let wanted = stopDeadline == nil ? store.scan.waitingFor : []
    for host in dispatch.hosts {
      for link in host.links {
        if link.connection.phase == .closed {
          bury(link, host)
        } else if link.connection.phase == .retired, link.endedEarly, !link.wasCounted {
          // A GOAWAY instead of an answer: what is in flight may take its time, and so do we.
          link.wasCounted = true
          countEarlyEnd(of: link, host)
        } else if !link.wasOpened, link.connection.phase == .open {
          link.wasOpened = true
          holdsProgram = true
          log.info("connected", ["host": host.name, "address": link.connection.peerAddress ?? "-"])
        }
      }
      guard wanted.contains(host.environment.rawValue), !host.isPaused(now: now) else { continue }
      var usable = 0
      var isDialing = false
      for link in host.links {
        switch link.connection.phase {
        case .dialing: isDialing = true
        case .open:
          usable += 1
          if !link.connection.isFresh(now: now) { link.connection.probe(now: now) }
        case .retired, .closed: break
        }
      }
      if !isDialing && (usable == 0 || host.needsAnother(now: now, most: configuration.connections)) {
        dial(host)
      }
    }
  }

  private func dial(_ host: Host) {
    let tag = nextLinkTag
    nextLinkTag += 1
    log.debug("dialling", ["host": host.name])
    let connection = network.connect(
      host: host.configuration.name, port: host.configuration.port, tag: tag, now: now)
    host.links.append(Link(connection, tag: tag, now: now))
  }

  /// Removes a closed connection; one that never answered is a fault of the host.
  private func bury(_ link: Link, _ host: Host) {
    link.connection.takeEnds { conclude($0, on: link) }
    host.links.removeAll { $0 === link }
    if link.endedEarly, !link.wasCounted, countEarlyEnd(of: link, host) { return }
    log.info(
      "connection closed",
      [
        "host": host.name, "reason": link.connection.fault ?? "closed by the peer",
        "goaway": link.connection.goawayDebug ?? "-",
      ])
  }

  /// Pauses the host whose connection came to nothing; false when an earlier episode covers it.
  @discardableResult
  private func countEarlyEnd(of link: Link, _ host: Host) -> Bool {
    let fault = link.connection.fault ?? link.connection.goaway ?? "closed by the peer"
    if host.links.contains(where: { $0 !== link && $0.isProven && $0.connection.phase == .open }) {
      // Rows have a connection that works; only more of them cannot be had.
      guard let length = host.growthPause.report(since: link.began, now: now) else { return false }
      log.info(
        "no further connection",
        ["host": host.name, "reason": fault, "pause": "\(length.milliseconds)ms"])
      return true
    }
    guard let length = host.dialPause.report(since: link.began, now: now) else { return false }
    host.isProbing = true
    host.trouble = fault
    log.warning(
      "host cannot be reached", ["host": host.name, "reason": fault, "pause": "\(length.milliseconds)ms"])
    return true
  }

  /// Gives up the connections that a burst has opened beyond the first.
  func closeIdleLinks() {
    for host in dispatch.hosts where host.links.count > 1 {
      for link in host.links.dropFirst()
      where link.inFlight == 0 && link.connection.phase == .open && now - link.lastUsed > .seconds(30) {
        link.retire()
      }
    }
  }
}
