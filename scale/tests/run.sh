#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# pvas-scale: the models' values, the command as a user types it, and bad input. Ends with the sum.
#
# O	where things are built

top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd) || exit 1
O=${O:-$top/build}
scale=$O/scale/pvas-scale
quiet=1
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"

# The checks of the library
units()
{
	"$O/scale/unit" >"$T/units"
	local status=$?

	passed=$((passed + $(grep -c '^ok ' "$T/units")))
	failed=$((failed + $(grep -c '^FAIL' "$T/units")))
	grep '^FAIL' "$T/units"
	check "the library's checks end" [ $status -lt 2 ]
}

# says TEXT ARGS: status 0, and a line that matches, whatever its blanks
says()
{
	local wanted=$1

	shift
	"$scale" "$@" >"$T/out" 2>"$T/err"
	equal "$? $(cat "$T/err")" "0 " && sed 's/  */ /g; s/^ //; s/ $//' "$T/out" | grep -qE -- "$wanted" ||
		{ echo "no '$wanted'"; return 1; }
}

# shows NAME TEXT ARGS
shows() { check "$1" says "${@:2}"; }

# refused STATUS TEXT ARGS: this status, nothing on standard output, and one line that matches
refused()
{
	local status=$1 wanted=$2

	shift 2
	"$scale" "$@" >"$T/out" 2>"$T/err" </dev/null
	[ $? -eq "$status" ] && [ ! -s "$T/out" ] && [ "$(wc -l <"$T/err")" -eq 1 ] &&
		grep -qE -- "^pvas-scale: .*$wanted" "$T/err"
}

# bad TEXT ARGS: a wrong command line; broken: a wrong file
bad() { check "refused: ${*:2}" refused 2 "$@"; }
broken() { check "refused: ${*:2}" refused 1 "$@"; }

json() { "$scale" "$@" --json | python3 -c 'import json, sys; d = json.loads(sys.stdin.read()); print(eval(sys.argv[1]))' "$ASK"; }

# answers WANTED EXPRESSION ARGS: of the JSON, d
answers()
{
	local wanted=$1 ASK=$2

	shift 2
	equal "$(json "$@" 2>&1)" "$wanted"
}

memory()
{
	shows "table 1, baseline" '^sum .* 1736006638768 1\.74 TB$' memory
	shows "table 1, lean" '^sum \(14m\+4c\+40\)n 1073794416 1\.07 GB$' memory
	shows "table 1, as printed" '^sum \(14m\+4c\+40\)n 1000665278 1\.00 GB$' memory --original
	shows "errata: buffers" '^communication buffers 11 - 150909732 151 MB$' memory
	shows "without: buffers" '^communication buffers 11 - 117770795 118 MB$' memory --original
	shows "without: it is said" '^note: without the errata' memory --original
	shows "9,216 nodes" '^sum .* 195 MB$' memory --model lean --nodes 9216 --ppn 1
	shows "9,216 nodes, as printed" '^sum .* 211 MB$' memory --model lean --nodes 9216 --ppn 1 --original
	shows "figures 4 and 5" '^65536 262144 108627172528 109 GB 539020656 539 MB$' memory --nodes 65536..1048576
	shows "figures 4 and 5, the other end" '^1048576 4194304 1736006638768 1.74 TB 1073794416 1.07 GB$' \
		memory --nodes 65536..1048576
	shows "ranks instead of nodes" '^1048576 nodes of 4 ranks' memory --ranks 4194304
	shows "the constant of (10)" '^note: equation 10 has the constant 5092928, but .* 5092960$' memory
	shows "(12) against (13)" '^note: .* 512 entries, 37\.7 MB instead of 67\.1 MB a node \(sum 165\.9 MB\)$' \
		memory --nodes 9216 --ppn 1
	shows "(12) at its end" '^note: equation 12 gives less than one entry' memory --ranks 8388609 --ppn 1
	shows "p for n" '^note: equations 12 and 13 write p for n$' memory
	shows "several GB each" '^note: section 2.4 .* 521 MB$' memory
	shows "no communicators" 'c = 0,' memory --comms 0
	shows "K computer, fast" '^9216 fast 9216 12900000000 12\.9 GB$' memory --model k
	shows "K computer, capped" '^9216 capped 1024 1520000000 1\.52 GB$' memory --model k
	shows "K computer, lean" '^9216 lean 0 140000000 140 MB$' memory --model k
	shows "K computer, all nodes" '^82944 fast .* 115 GB$' memory --model k --nodes 82944
	shows "K computer, eager for all" '^100000 eager .* 25\.6 GB$' memory --model k --nodes 100000
	shows "K computer, two values of b" '^note: figure 10: .* no single b' memory --model k
	shows "K computer, 40 hops" '^hops 40: eager up to 61440 bytes' memory --model k --hops 40
	check "JSON of the models" answers '([1736006638768, 1073794416], 15, 5)' \
		'[m["bytes"] for m in d["jobs"][4]["models"]], sum(len(m["parts"]) for m in d["jobs"][0]["models"]), len(d["jobs"])' \
		memory --nodes 65536..1048576
	check "JSON: parts sum up" answers True \
		'all(sum(p["bytes"] for p in m["parts"]) == m["bytes"] for j in d["jobs"] for m in j["models"])' \
		memory --nodes 1,7,9216,2^30 --ppn 3
	check "JSON of the K computer" answers '[12900000000, 1520000000, 140000000]' \
		'[m["bytes"] for m in d["jobs"][0]["modes"]]' memory --model k
	shows "BTL pvas" '^64 4 17496 17\.5 KB$' memory --model pvas --ranks 64
	shows "BTL pvas, one fast peer" '^64 1 ' memory --model pvas --ranks 64 --cap 1
	shows "CSV of the BTL pvas" '^225,8,pvas,3,18368$' memory --model pvas --csv
	check "JSON of the BTL pvas" answers '[17384, 17496]' '[j["bytes"] for j in d["jobs"]]' \
		memory --model pvas --ranks 4,64
	shows "CSV" '^1048576,4,4194304,10,1024,1,lean,sum,0,1073794416$' memory --csv
	shows "CSV of the K computer" '^9216,1,9216,1024,k,capped,1024,1520000000$' memory --model k --csv
}

neighbour()
{
	shows "8 MB" '^8388608 3357\.44 14\.991 2519\.58 19\.976 1\.33$' neighbour
	shows "the ratio, twice" '= 1\.33 \(3\), 4/3 = 1\.33 \(8\)$' neighbour -N 6 -C 4
	shows "the lines cross" 'faster from 10000 bytes on$' neighbour
	shows "they do not" '^the lines do not cross$' neighbour -N 8 -C 4
	shows "8 KB" '^8192 5\.28 9\.[0-9]* 5\.46 9\.[0-9]* 0\.97$' neighbour --bytes 8K,16K
	shows "16 KB" '^16384 8\.55 11\.[0-9]* 7\.92 12\.[0-9]* 1\.08$' neighbour --bytes 8K,16K
	shows "the schedule" '^1 2 1 0 4194304 4194304$' neighbour --schedule all
	shows "it is as promised" '12 segments checked: 12582912 to 12582912 bytes a device \(equal\), 0 collisions, 0 missing, 0 repeated$' neighbour
	shows "a message that cannot be cut evenly" '^schedule of 7 bytes, .* \(equal\), 0 collisions' neighbour --bytes 7
	shows "too many to check" '^schedule not checked' neighbour -N 2^40 -C 3
	shows "the loops" '^note: the loops' neighbour
	shows "the listing" '^note: the listings send' neighbour
	shows "measured in the paper" '^note: measured in the paper' neighbour -N 6 -C 4
	check "but not with 6 and 5" sh -c '! "$0" neighbour -N 6 -C 5 | grep -q "note: .*\(measured\|divide\)"' "$scale"
	check "nor with 7 and 4" sh -c '! "$0" neighbour -N 7 -C 4 | grep -q "note: .*\(measured\|divide\)"' "$scale"
	shows "x = 0" '^note: the devices divide the neighbours' neighbour -N 8 -C 4
	check "JSON of the schedule" answers '(12, [0, 4, 2], 10000)' \
		'len(d["schedule"]), [s["destination"] for s in d["schedule"] if s["device"] == 0], round(d["crossing_bytes"])' \
		neighbour --schedule all
	check "JSON without a crossing" answers None 'd["crossing_bytes"]' neighbour -N 8 -C 4
	check "CSV of the schedule" equal "$("$scale" neighbour --schedule 2 --bytes 100 --csv | tail -n 1)" 2,3,1,5,50,50
	shows "CSV" '^6,4,8388608,3357\.4432,2519\.5824,' neighbour --csv
}

# measured SCRIPT: lines n, m, bytes
measured() { awk 'BEGIN { for (m = 1; m <= 16; m *= 4) for (n = 1024; n <= 65536; n *= 2) print n, m, '"$1"' }'; }

fit()
{
	measured '3000000 + 40 * n + 16 * m * n + 9000 * m * m + 77 * m' >"$T/exact"
	shows "terms" '^mn 16 [0-9.e-]+$' fit "$T/exact"
	shows "the largest m" '^1048576 16 16777216 4\.97 GB' fit "$T/exact"
	shows "another size" '^1048576 4 4194304 439 MB' fit "$T/exact" --nodes 1048576 --ppn 4
	shows "how far" '^note: 4194304 ranks are 64 times the largest' fit "$T/exact" --ranks 4194304 --ppn 4
	shows "an m that was not measured" '^note: no job with 3 ranks' fit "$T/exact" --nodes 10 --ppn 3
	check "JSON" answers "(['1', 'n', 'mn', 'm2', 'm'], True)" \
		'[t["term"] for t in d["terms"]], d["r2"] > 0.999999' fit "$T/exact"
	shows "CSV" '^1024,4,4096,3570292,' fit "$T/exact" --nodes 1024 --ppn 4 --csv
	"$scale" memory --nodes 2^10..2^20 --csv --model lean |
		awk -F, '$8 == "sum" && $1 > 8192 { print $3, $2, $10, "# errata" }' >"$T/model"
	shows "what memory prints" '^n 136 ' fit "$T/model"
	printf '# n,m,bytes\n\n1024,4,1000\r\n2048,4,2000\n 4096 , 4 , 3000 # x\n' >"$T/csv"
	shows "commas, comments, CR" '^n [0-9.]+ ' fit "$T/csv"
	check "standard input" equal "$("$scale" fit - --csv <"$T/exact")" "$("$scale" fit "$T/exact" --csv)"
}

bad_memory()
{
	local option value

	for option in nodes ranks ppn contexts; do
		for value in 0 -1 x '' 1.5 18446744073709551616 ' 1'; do
			bad "--$option '$value'" memory --$option "$value"
		done
	done
	bad "'-1'" memory --comms -1
	bad "do not fit into 64 bits" memory --nodes 18446744073709551615 --ppn 1
	bad "their product does not fit" memory --nodes 18446744073709551615 --ppn 2
	bad "do not fit into 64 bits" memory --comms 18446744073709551615
	bad "do not fit into 64 bits" memory --contexts 18446744073709551615
	bad "more than the 3 ranks" memory --ranks 3 --ppn 4
	bad "not a multiple" memory --ranks 10 --ppn 4
	bad "does not go with" memory --ranks 4 --nodes 1
	bad "does not go with" memory --csv --json
	bad "not baseline" memory --model x
	bad "1 rank a node" memory --model k --ppn 4
	bad "does not go with --model k" memory --model k --comms 4
	bad "go with --model k only" memory --cap 4
	for option in --nodes=4 --ppn=4 --comms=4 --contexts=4 --original --hops=4 --plot=x.svg; do
		bad "does not go with --model pvas" memory --model pvas "$option"
	done
	bad "do not fit" memory --model pvas --ranks 2^60
	bad "do not fit" memory --model k --nodes 2^60
	bad "do not fit" memory --model k --hops 18446744073709551615
	bad "no option of this command" memory --bytes 4
	bad "several sizes" memory --plot x.svg
	bad "ends in .svg" memory --nodes 1..8 --plot x.gif
	bad "not an option" memory 4
	bad "needs a value" memory --nodes
	bad "unknown option" memory --node-count
	bad "no command"
	bad "not a command" models
	broken "No such file" memory --nodes 1..8 --plot "$T/none/x.svg"
}

bad_neighbour()
{
	local option value

	for option in neighbours devices bytes latency bandwidth; do
		for value in 0 -1 x ''; do
			bad "--$option '$value'" neighbour --$option "$value"
		done
	done
	bad "N > C > 1" neighbour -N 4 -C 4
	bad "N > C > 1" neighbour -N 4 -C 6
	bad "N > C > 1" neighbour -N 4 -C 1
	bad "does not fit" neighbour -N 18446744073709551615 -C 2
	bad "does not fit" neighbour --bytes 18446744073709551615
	bad "no step 3" neighbour --schedule 3
	bad "more than 8192 segments" neighbour -N 70000 -C 69999 --schedule 0
	bad "not \"all\"" neighbour --schedule 2..1
	bad "no option of this command" neighbour --nodes 4
	bad "does not go with" neighbour --schedule all --plot x.svg --bytes 1K..8M
}

# bad_file TEXT LINES
bad_file()
{
	printf '%b' "$2" >"$T/file"
	check "refused: '$2'" refused 1 "$1" fit "$T/file"
}

bad_fit()
{
	local good='1024 1 1000\n2048 1 2000\n4096 1 4000\n'

	bad_file "no measurements" ''
	bad_file "no measurements" '# nothing\n'
	bad_file "line 4: n does not increase" "${good}4096 1 4000\n"
	bad_file "line 4: n does not increase" "${good}1024 1 5000\n"
	bad_file "line 4: the bytes fall" "${good}8192 1 3900\n"
	bad_file "line 4: not three" "${good}8192 1\n"
	bad_file "line 4: not three" "${good}8192 1 8000 1\n"
	bad_file "line 4: not three" "${good}8192 1 -8000\n"
	bad_file "line 4: not three" "${good}8192 0 8000\n"
	bad_file "line 4: not three" "${good}8192 1 8e3\n"
	bad_file "line 4: not three" "${good}8192 1 99999999999999999999\n"
	bad_file "line 4: 8 ranks a node, but only 4" "${good}4 8 8000\n"
	bad_file "too few for 2 terms" '1024 1 1000\n2048 1 2000\n'
	bad_file "longer than" "$(printf '%300d' 1)\n"
	broken "No such file" fit "$T/none"
	broken "Is a directory" fit "$T"
	broken "or no text" fit /dev/zero
	printf '%b' "$good" >"$T/file"
	shows "the same file is good without the bad line" '^n 0\.97' fit "$T/file"
	broken "the term mn can't be told" fit "$T/file" --terms n,mn
	bad "only jobs with 1 ranks" fit "$T/file" --ppn 4
	bad "each once" fit "$T/file" --terms n,n
	bad "needs a file" fit
	bad "not an option" fit "$T/file" "$T/file"
	bad "no option of this command" fit "$T/file" --comms 4
}

# The figures are drawn, with both lines.
plots()
{
	command -v gnuplot >/dev/null || { skip "figures" "no gnuplot"; return; }
	try "figures 4 and 5" "$scale" memory --nodes 65536..1048576 --plot "$T/it's.svg"
	try "it is a figure" grep -q '>lean<' "$T/it's.svg"
	try "figure 5, by parts" "$scale" memory --nodes 65536..1048576 --model lean --plot "$T/five.svg"
	try "it has the parts" grep -q '>lean: switching<' "$T/five.svg"
	try "figure 10" "$scale" memory --model k --nodes 96,192,9216 --plot "$T/k.svg"
	try "it has the modes" grep -q '>capped<' "$T/k.svg"
	try "figure 6" "$scale" neighbour --bytes 1K..8M --plot "$T/six.png"
	try "it is a PNG" grep -q PNG "$T/six.png"
	check "without gnuplot" sh -c 'PATH=/nowhere "$0" memory --nodes 1..8 --plot "$1" 2>&1 |
		grep -q "is gnuplot installed"' "$scale" "$T/none.svg"
}

# under MILLISECONDS ARGS: of processor time, because others use this machine; the best of five
under()
{
	python3 - "$scale" "$@" <<-'EOF'
	import resource, subprocess, sys
	def processor_ms():
	    used = resource.getrusage(resource.RUSAGE_CHILDREN)
	    return 1000 * (used.ru_utime + used.ru_stime)
	took = []
	for _ in range(5):
	    before = processor_ms()
	    subprocess.run([sys.argv[1]] + sys.argv[3:], stdout=subprocess.DEVNULL, check=True)
	    took.append(processor_ms() - before)
	print(min(took), "ms")
	sys.exit(not 0 < min(took) < float(sys.argv[2]))
	EOF
}

speed()
{
	awk 'BEGIN { for (m = 1; m <= 8; m++) for (n = 1; n <= 256; n++) print n * 1024, m, 1e6 + n * 1e6 * m }' >"$T/many"
	try "memory in 10 ms" under 10 memory --nodes 2^0..2^37 --json
	try "neighbour in 10 ms" under 10 neighbour -N 8193 -C 8192 --schedule 0 --json
	try "a schedule in 10 ms" under 10 neighbour -N 183 -C 179 --json
	try "fit in 10 ms" under 10 fit "$T/many"
}

help()
{
	shows "help" '^Usage: pvas-scale memory' --help
	shows "help of a command" '^Usage: pvas-scale memory' fit --help
	shows "version" "^pvas-scale $("$top/scripts/set-version")\$" --version
	check "a full disk" sh -c '"$0" memory 2>&1 >/dev/full | grep -q "^pvas-scale: cannot write"' "$scale"
}

# Each key of the JSON is in the manual page, and none more.
json_keys()
{
	python3 - "$scale" "$top/man/pvas-scale.1" "$T/exact" <<-'EOF'
	import json, re, subprocess, sys
	def keys(value):
	    if isinstance(value, dict):
	        return set(value).union(*map(keys, value.values()))
	    return set().union(*map(keys, value)) if isinstance(value, list) else set()
	printed = set()
	for words in ("memory", "memory --model k", "neighbour --schedule all", "fit " + sys.argv[3]):
	    printed |= keys(json.loads(subprocess.check_output([sys.argv[1], *words.split(), "--json"])))
	page = open(sys.argv[2]).read().split(".Sh JSON")[1].split("\n.Sh ")[0]
	said = set(re.findall(r"\w+", " ".join(re.findall(r"^\.(?:It )?Cm (.*)", page, re.M))))
	for name, faults in (("not in the page", printed - said), ("not printed", said - printed)):
	    if faults:
	        print(name, sorted(faults))
	sys.exit(printed != said)
	EOF
}

units
memory
neighbour
fit
bad_memory
bad_neighbour
bad_fit
plots
speed
help
check "the keys of JSON are those of the manual page" json_keys
sum_up
