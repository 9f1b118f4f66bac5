#!/bin/sh
# Brings up the agent of a fray slice on this machine. Compute Engine and Cloud
# TPU run it as root at every boot; running it again, or twice at once, does no
# harm. It fetches fray's own program from the stack's bucket by its SHA-256 with
# the machine's identity, checks it, installs it and keeps it running, under
# systemd where there is one.
#
# What it is doing is in $root/status ("fetching", "verified", "installed",
# "running" or "failed", with a reason), in the guest attribute fray/status, line by
# line in $root/boot.log and on the serial console, and in the stack's bucket as
# boot/SLICE/MACHINE, until the agent removes that.
#
# For rehearsals: FRAY_ROOT moves everything, FRAY_UNIT_DIR the unit (empty: no
# systemd), GCE_METADATA_HOST and STORAGE_EMULATOR_HOST the two services, and
# FRAY_BOOT_TRIES and FRAY_BOOT_PAUSE (seconds) say how often and when to retry,
# FRAY_BOOT_LIMIT (seconds) how long a short answer may take.
set -u
umask 022

root=${FRAY_ROOT:-/var/lib/fray}
units=${FRAY_UNIT_DIR-/etc/systemd/system}
metadata=http://${GCE_METADATA_HOST:-169.254.169.254}/computeMetadata/v1/instance
tries=${FRAY_BOOT_TRIES:-130} # half a minute apart in the end: an hour
first_pause=${FRAY_BOOT_PAUSE:-1}
limit=${FRAY_BOOT_LIMIT:-10}
storage=${STORAGE_EMULATOR_HOST:-https://storage.googleapis.com}
case $storage in
*://*) ;;
*) storage=http://$storage ;;
esac

why=''
header=''
data=''
last=
image=''  # that is to have NVIDIA's driver; '': this machine has no GPUs
upload='' # where this machine's status is uploaded to; '': not known yet
published=

log() {
	line="$(date -u +%Y-%m-%dT%H:%M:%SZ) fray: $*"
	printf '%s\n' "$line"
	printf '%s\n' "$line" 2>/dev/null >>"$root/boot.log" || :
}

# status STATE [REASON] reports how far this has come.
status() {
	state="$1${2:+: $2}"
	[ "$state" = "$last" ] || show
	case $1 in
	installed) ;; # running follows at once, and one object takes one write a second
	running) [ -z "$published" ] || publish ;; # at a reboot the agent may run already
	*) publish ;;
	esac
}

# show puts $state where it is seen without the bucket.
show() {
	last=$state
	log "$state"
	if printf '%s\n' "$state" 2>/dev/null >"$root/.status.new"; then
		mv -f "$root/.status.new" "$root/status"
	fi
	header='Metadata-Flavor: Google'
	data=$state
	request PUT "$metadata/guest-attributes/fray/status"
}

# publish uploads $state, once for each call: what fails is tried again with the next
# status, and delays the start by two short requests at most. In a shell of its own, it
# leaves the variables of the step that it is called in.
publish() {
	[ -n "$upload" ] && [ "$state" != "$published" ] || return 0
	if (
		token || exit 1
		data=$state
		request POST "$storage/upload/storage/v1/$upload"
		[ "$code" = 200 ] || { log "status not uploaded: $code" && exit 1; }
	); then
		published=$state
	fi
}

# request METHOD URL [FILE] makes one request with $header and $data, and leaves
# the HTTP status in $code; 000 if there was none, and then $why says why not.
# Without FILE the answer is left in $body, and has to come within $limit seconds.
# The header goes to the program without being seen in the list of processes.
request() {
	method=$1 url=$2 file=${3:-}
	if command -v curl >/dev/null 2>&1; then
		set -- -sS -K - -X "$method" --noproxy 169.254.169.254 --connect-timeout 10 -w '\n@%{http_code}@\n'
		[ "$method" = GET ] || set -- "$@" -H 'Content-Type: text/plain' --data-binary "$data"
		if [ -n "$file" ]; then
			set -- "$@" --speed-limit 1024 --speed-time 30 -o "$file"
		else
			set -- "$@" --max-time "$limit"
		fi
		answer=$(printf 'header = "%s"\n' "$header" | curl "$@" "$url" 2>&1)
	elif command -v python3 >/dev/null 2>&1; then
		answer=$(FRAY_HEADER=$header FRAY_DATA=$data python3 -IS - "$method" "$url" "$file" "$limit" 2>&1 <<'PYTHON'
import os, shutil, signal, sys, urllib.error, urllib.request
method, url, path, limit = sys.argv[1:]
name, _, value = os.environ["FRAY_HEADER"].partition(": ")
headers, data = {name: value}, None
if method != "GET":
    headers["Content-Type"], data = "text/plain", os.environ["FRAY_DATA"].encode()
asked = urllib.request.Request(url, data=data, method=method, headers=headers)
status = 0
def late(*_):
    raise OSError(f"no answer within {limit} s")
try:
    if not path:
        signal.signal(signal.SIGALRM, late)
        signal.alarm(int(limit))
    try:
        answer = urllib.request.urlopen(asked, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        if not path:
            sys.stdout.write(answer.read().decode(errors="replace"))
        else:
            with open(path, "wb") as out:
                shutil.copyfileobj(answer, out, 1 << 20)
                wanted, got = answer.headers.get("Content-Length"), out.tell()
            if wanted and int(wanted) != got:
                raise OSError(f"got {got} of {wanted} bytes")
    status = answer.status
except Exception as error:
    print(error)
    print("@000@")
    sys.exit(1)
print(f"\n@{status}@")
PYTHON
		)
	else
		answer='there is neither curl nor python3 to make requests with
@000@'
		false
	fi
	result=$?
	code=$(printf '%s\n' "$answer" | sed -n '$s/^@\([0-9][0-9]*\)@$/\1/p')
	body=$(printf '%s\n' "$answer" | sed '$d')
	if [ "$result" -ne 0 ] || [ -z "$code" ]; then
		code=000
		why=$(printf '%s\n' "$answer" | sed '/^@[0-9]*@$/d' | tr '\n' ' ')
	fi
}

# attribute NAME leaves an attribute of this machine in $value.
attribute() {
	header='Metadata-Flavor: Google'
	request GET "$metadata/attributes/$1"
	case $code in
	200) value=$body ;;
	000) why="the metadata server does not answer: $why" && return 1 ;;
	404) why="this machine has no metadata $1; it was not made by fray" && return 1 ;;
	*) why="the metadata server answers $code for $1" && return 1 ;;
	esac
}

# again COMMAND… runs a step until it succeeds, with growing pauses.
again() {
	n=0 pause=$first_pause
	until "$@"; do
		n=$((n + 1))
		if [ "$n" -ge "$tries" ]; then
			status failed "$why; given up after $n tries"
			return 1
		fi
		status failed "$why; trying again"
		sleep "$pause"
		pause=$((pause * 2))
		if [ "$pause" -gt 30 ]; then pause=30; fi
	done
	return 0 # not what the last pause left
}

# alone FD takes the lock of an open file; where locks cannot be taken it trusts.
alone() { ! command -v flock >/dev/null 2>&1 || flock -n "$1"; }

make_root() {
	why="cannot make $root: $(mkdir -p "$root/bin" "$root/work" "$root/cache" 2>&1)" || return 1
	rm -f "$root"/bin/.new-* # of a run that was killed
}

read_metadata() {
	attribute fray-agent-sha256 && sum=$value &&
		attribute fray-agent-object && object=$value &&
		attribute fray-store && bucket=${value%%\?*} &&
		attribute fray-slice && slice=$value || return 1
	if attribute fray-boot-upload; then # for people: nothing else fails without it
		target=$value
		machine && upload=$target$name
	fi
	if attribute fray-driver-image; then # of machines with GPUs
		image=$value
	elif [ "$code" != 404 ]; then
		return 1
	fi
	case $sum in
	*[!0-9a-f]* | '') why="metadata fray-agent-sha256 is '$sum', which is no SHA-256" && return 1 ;;
	esac
	program=$root/bin/fray-$sum
}

# machine leaves in $name what this machine states its status under: the number of its
# host, which Cloud TPU gives it, else its own name.
machine() {
	attribute agent-worker-number && name=$value && return
	attribute tpu-env && name=$(printf '%s\n' "$value" | sed -n "s/^WORKER_ID: *'\{0,1\}\([0-9][0-9]*\).*/\1/p") && [ -n "$name" ] && return
	header='Metadata-Flavor: Google'
	request GET "$metadata/name"
	[ "$code" = 200 ] && name=$body && return
	why="the metadata server answers $code for the name of this machine"
	return 1
}

sha256() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum "$1" | cut -d ' ' -f 1
	else
		python3 -IS -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$1"
	fi
}

token() {
	header='Metadata-Flavor: Google'
	request GET "$metadata/service-accounts/default/token"
	case $code in
	200) ;;
	404) why='this machine has no service account; give its slice one with service_account' && return 1 ;;
	000) why="no token from the metadata server: $why" && return 1 ;;
	*) why="no token from the metadata server: it answers $code" && return 1 ;;
	esac
	header="Authorization: Bearer $(printf '%s\n' "$body" | sed -n 's/.*"access_token" *: *"\([^"]*\)".*/\1/p')"
	body=
}

account() {
	header='Metadata-Flavor: Google'
	request GET "$metadata/service-accounts/default/email"
	[ "$code" = 200 ] && echo "$body" || echo "this machine's service account"
}

# room adds to $why that the disk is full, where it is.
room() {
	free=$(df -Pk "$root" 2>/dev/null | sed -n '$s/^.* \([0-9][0-9]*\)  *[0-9]*%.*/\1/p')
	if [ "${free:-1000000}" -lt 200000 ]; then
		why="$why (there are $free KiB free at $root; the host needs a larger disk)"
	fi
}

# fetch leaves the program, checked and whole, at $program. What it was made of
# is remembered beside it, so that a later boot can tell that it is still that.
fetch() {
	if [ -x "$program" ] && [ "$(sha256 "$program")" = "$(cat "$program.sha256" 2>/dev/null)" ]; then
		return
	fi
	status fetching "$bucket/bundles/$sum"
	new=$root/bin/.new-$$
	token || return 1
	request GET "$storage/storage/v1/$object?alt=media" "$new"
	header=
	case $code in
	200) ;;
	000) why="$bucket/bundles/$sum was not fetched: $why" && room ;;
	401 | 403)
		why="$(account) may not read $bucket (status $code); grant storage.objectViewer to it there, or storage.objectUser, since its agent also writes there"
		;;
	404) why="$bucket/bundles/$sum is not there; run fray apply again, which ships it" ;;
	*) why="$storage answers $code for $bucket/bundles/$sum" ;;
	esac
	if [ "$code" != 200 ] || ! unpack; then
		rm -f "$new" "$new.program" "$new.sha256"
		return 1
	fi
}

# unpack checks what was fetched, then puts the program in its place.
unpack() {
	got=$(sha256 "$new")
	if [ "$got" != "$sum" ]; then
		why="what is in $bucket/bundles/$sum has the SHA-256 $got; delete it and run fray apply again"
		return 1
	fi
	status verified
	if gzip -t "$new" 2>/dev/null; then
		if ! gzip -dc "$new" 2>/dev/null >"$new.program"; then
			why='the program cannot be unpacked' && room
			return 1
		fi
		rm -f "$new"
	else
		mv -f "$new" "$new.program"
	fi
	chmod 755 "$new.program"
	if ! runs=$("$new.program" version 2>&1); then
		why="the program does not run on this $(uname -s) $(uname -m): $runs"
		return 1
	fi
	sha256 "$new.program" >"$new.sha256"
	# Else a machine that is cut off may keep names of empty files. Where only all
	# files can be synced, that it is.
	sync "$new.sha256" "$new.program" 2>/dev/null || sync
	mv -f "$new.sha256" "$program.sha256" && mv -f "$new.program" "$program" && return
	why="cannot install the program in $root/bin" && room
	return 1
}

# driver checks that programs of this machine can use its GPUs. NVIDIA's own program also
# loads the kernel modules and makes the devices.
driver() {
	[ -n "$image" ] || return 0
	if ! command -v nvidia-smi >/dev/null 2>&1; then
		found='it has no nvidia-smi'
	elif found=$(nvidia-smi -L 2>&1) && [ -n "$found" ]; then
		log "$found"
		return
	fi
	why="the boot image $image has no NVIDIA driver for the GPUs of this machine ($(printf '%s' "${found:-nvidia-smi lists no GPU}" | tr '\n' ' ')); set boot_image to one that has"
	return 1
}

# place CONTENT FILE replaces a file unless it has that content; false if it had.
place() {
	[ "$(cat "$2" 2>/dev/null)" = "$1" ] && return 1
	printf '%s\n' "$1" >"$2.new" && mv -f "$2.new" "$2"
}

has_systemd() { [ -n "$units" ] && [ -d "${FRAY_SYSTEMD_DIR:-/run/systemd/system}" ] && command -v systemctl >/dev/null 2>&1; }

# Tasks are in the unit's cgroup and outlive the agent; a new program is put in
# place by killing the old one, whose tasks the new one then takes over.
start_systemd() {
	unit="[Unit]
Description=fray agent of slice $slice
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=$command
Environment=HOME=/root
Restart=always
RestartSec=2
KillMode=process
TimeoutStopSec=60
Delegate=yes
TasksMax=infinity
LimitNOFILE=1048576
LimitMEMLOCK=infinity

[Install]
WantedBy=multi-user.target"
	if place "$unit" "$units/fray-agent.service"; then
		systemctl daemon-reload
		systemctl kill --kill-who=main --signal=KILL fray-agent.service 2>/dev/null
	fi
	why="systemd does not start it: $(systemctl enable --now fray-agent.service 2>&1)"
}

# Without systemd a loop keeps the agent running, one for a machine.
start_plainly() {
	why="cannot write $root/run-agent"
	place "#!/bin/sh
# Keeps fray's agent running; see boot.log.
exec 8>'$root/run-agent.lock'
! command -v flock >/dev/null 2>&1 || flock -n 8 || exit 0
while :; do
	$command 8>&- >>'$root/agent.log' 2>&1
	sleep 2
done" "$root/run-agent"
	[ -s "$root/run-agent" ] || return 1
	HOME=${HOME:-/root} setsid sh "$root/run-agent" </dev/null >/dev/null 2>&1 9>&- &
}

start() {
	command="$program agent --metadata --dir $root/host --cache-dir $root/cache --work-dir $root/work"
	status running # first: the agent has more to say
	if has_systemd; then start_systemd; else start_plainly; fi
}

again make_root || exit 1
exec 9>"$root/boot.lock"
if ! alone 9; then
	log 'another run of this script is at it'
	exit 0
fi
again read_metadata && again fetch || exit 1
status installed
again driver || exit 1
again start || exit 1
log 'the agent is started'
