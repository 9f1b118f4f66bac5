#!/bin/sh
# check.sh OUT: counts the whole corpus in one process, by other means than
# count.sh does, and compares the result with OUT/counts.tsv.
set -eu
export LC_ALL=C

out=${1:?usage: check.sh OUT}
corpus=$(dirname "$0")/../data/opticks.txt
want=$(mktemp)
trap 'rm -f "$want"' EXIT

tr 'A-Z' 'a-z' <"$corpus" | tr -cs 'a-z' '\n' | sed '/^$/d' | sort | uniq -c |
	sed 's/^ *\([0-9]*\) \(.*\)$/\2	\1/' | sort -k2,2nr -k1,1 >"$want"
test -s "$want" || { echo "check: $corpus has no words" >&2; exit 1; }
cmp "$want" "$out/counts.tsv"
echo "ok: $(wc -l <"$want" | tr -d ' ') different words, the same counts"
