#!/bin/sh
# Counts the words of one part of CORPUS: every SHARDS-th line, from line SHARD on.
# Writes OUT/part-SHARD.tsv with a word and its count per line. A word is a run
# of ASCII letters, in lower case.
set -eu
export LC_ALL=C

mkdir -p "$OUT"
part="$OUT/part-$SHARD.tsv"
awk -v shards="$SHARDS" -v shard="$SHARD" '
	NR % shards == shard {
		line = tolower($0)
		gsub(/[^a-z]+/, " ", line)
		n = split(line, words, " ")
		for (i = 1; i <= n; i++) count[words[i]]++
		total += n
	}
	END {
		for (word in count) printf "%s\t%d\n", word, count[word]
		printf "shard %d of %d: %d words\n", shard, shards, total > "/dev/stderr"
	}
' "$CORPUS" >"$part.tmp"
mv "$part.tmp" "$part" # whole or not there
