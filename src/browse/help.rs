//! What `?` shows.

/// Every key.
pub(super) const HELP: &str = "\
Keys

  ↑ ↓ PgUp PgDn Home End   move; also j k g G
  Enter                    open: queue → group → message
  Esc, Backspace           back; among groups it first clears the filter
  n b                      in a message: the next one, the one before
  /                        filter as you type; Enter keeps it, Esc clears it
  Space                    mark; on a group all its messages
  a                        mark all that are shown, or none of them
  u                        take all marks away
  r                        replay: first shows where they would land, then asks
  e                        export to a file; the messages stay in the queue
  p                        purge: writes them to a file, then removes them;
                           the queue's name must be typed
  R, F5                    load again
  Ctrl-C, Esc              while something runs: stop in order, nothing is lost
  Ctrl-L, Ctrl-Z           draw anew; leave for a while (fg comes back)
  q                        quit

What is done is done to the marked messages, also to those that the filter
hides; without any mark to the selected message or group.

Filter: plain text is looked for in all of a message: origin, reason, error,
exchange, keys, properties, headers, and the first 64 KiB of its body; upper and
lower case are the same. A filter that begins with = is a jq program, as for
mq dlq inspect --filter:

  =.attempts > 2
  =.body | fromjson? | .customer == 7

Until its answer is there, or when it failed, nothing is marked or done.

Marks: * is marked, > is selected. A message has no id, so that two that are the
same in everything are marked together; no more are dealt with than were marked.

Looking: messages are taken and put back in one go, only where that is safe.
Only the first of a long queue are loaded, see --limit.";
