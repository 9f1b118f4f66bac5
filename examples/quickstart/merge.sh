#!/bin/sh
# Adds up OUT/part-0.tsv to OUT/part-(SHARDS-1).tsv into OUT/counts.tsv: a word
# and its count per line, the most frequent first.
set -eu
export LC_ALL=C

set --
shard=0
while [ "$shard" -lt "$SHARDS" ]; do
	set -- "$@" "$OUT/part-$shard.tsv"
	shard=$((shard + 1))
done
awk -F '\t' '
	{ count[$1] += $2 }
	END { for (word in count) printf "%s\t%d\n", word, count[word] }
' "$@" >"$OUT/counts.tmp" # a part that is missing fails here
sort -k2,2nr -k1,1 -o "$OUT/counts.tmp" "$OUT/counts.tmp"
mv "$OUT/counts.tmp" "$OUT/counts.tsv"
echo "the ten most frequent words:"
sed 10q "$OUT/counts.tsv"
