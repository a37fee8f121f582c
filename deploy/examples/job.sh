#!/bin/sh
# Runs a nightly job, and nudges when it fails. NUDGED_DATABASE names the database.
set -eu

if ! "${1:?usage: job.sh COMMAND}"; then
  nudged send --event failure --title Backup --body "$1 failed on $(uname -n)" --dedupe-key "backup-$(date +%F)"
fi
