# What perflab runs on the machine of an engine: POSIX sh, grep, tr, cat, sleep and
# /proc, nothing else. perflab sends it through stdin, with assignments before it.
# Its variables begin with k_, so that it changes none that the engine inherits.
#
#   k_tag     begins each line that is for perflab; all else on stdout is the engine's
#   k_mode    keep | run | end
#   k_marker  KEY=value that the engine and all it starts have in their environment
#   k_limit   seconds without a line from perflab after which the engine is ended
#   k_grace   milliseconds from SIGTERM to SIGKILL then
#   k_pid, k_began, k_boot, k_dir   of an engine of an earlier keeper (mode end): its number and
#             start time are of nobody's on another machine, or after another boot
#
# keep: says "dir D"; reads a job (shell text up to a line "#end" with the tag's
# word) that sets environment, directory and arguments; says "started PID START BOOT" and
# "exit CODE". It reads "beat" (and answers), "stop GRACE PORT" and "kill". When the
# engine was asked to end it says "left PID NAME" of what stays, "served PORT" where
# somebody still listens, and "done". When its stdin ends or is silent it does the same and
# says nothing.
k_umask_was=$(umask)
umask 077
trap : PIPE HUP # a handler, not "ignore", which the engine would inherit

say() { printf '%s%s\n' "$k_tag" "$*" 2>/dev/null; }

mark() { { true > "$k_d/$1"; } 2>/dev/null; }

# nap sleeps for a moment and counts it.
nap() {
	if [ "$k_waited" -lt 100 ] && sleep 0.02 2>/dev/null; then
		k_waited=$((k_waited + 20))
	elif sleep 0.1 2>/dev/null; then
		k_waited=$((k_waited + 100))
	else
		sleep 1
		k_waited=$((k_waited + 1000))
	fi
}

# look_at PID reads what /proc says of a process that runs. Its name may hold
# anything, so the fields count from the last parenthesis.
look_at() {
	{ read -r k_line < "/proc/$1/stat"; } 2>/dev/null || return 1
	case $k_line in
	*") "*) ;;
	*) k_line=$(cat "/proc/$1/stat" 2>/dev/null) ;;
	esac
	k_name=${k_line#*"("}
	k_name=${k_name%")"*}
	set -- ${k_line##*")"}
	k_state=$1 k_group=$3 k_session=$4 k_start=${20}
	case $k_state in
	Z | X | '') return 1 ;;
	esac
}

boot_id() { cat /proc/sys/kernel/random/boot_id 2>/dev/null; }

# candidates lists the environments that may have the marker: all of them where
# grep does not look beyond a NUL.
candidates() {
	if [ -n "$k_deep" ]; then
		grep -lsF -e "$k_marker" /proc/[0-9]*/environ 2>/dev/null
	else
		echo /proc/[0-9]*/environ
	fi
}

# marked lists the processes that were started with the marker.
marked() {
	[ -n "$k_marker" ] || return
	for k_f in $(candidates); do
		k_f=${k_f%/environ}
		{ tr '\0' '\n' < "$k_f/environ" | grep -qxF -e "$k_marker" && echo "${k_f#/proc/}"; } 2>/dev/null
	done
}

# look sets left to what still runs of the engine. Its group is looked at last: it
# may have members that wiped their environment.
look() {
	k_left=$(echo $(marked))
	[ -n "$k_pid" ] || return
	if look_at "$k_pid" && [ "$k_start" = "$k_began" ]; then
		case " $k_left " in
		*" $k_pid "*) ;;
		*) k_left="$k_left $k_pid" ;;
		esac
	fi
	if [ -z "$k_left" ] && kill -s 0 -- "-$k_pid" 2>/dev/null; then
		for k_f in /proc/[0-9]*; do
			look_at "${k_f#/proc/}" && [ "$k_group" = "$k_pid" ] && [ "$k_session" = "$k_pid" ] && k_left="$k_left ${k_f#/proc/}"
		done
	fi
}

# signal NAME reaches the group as long as its id is its own, and what left it.
signal() {
	k_whole=
	if look_at "$k_pid" && [ "$k_start" = "$k_began" ] && [ "$k_group" = "$k_pid" ]; then
		k_whole=$k_pid
		kill -s "$1" -- "-$k_pid" 2>/dev/null
	fi
	for k_p in $k_left; do
		look_at "$k_p" && [ "$k_group" != "$k_whole" ] && kill -s "$1" "$k_p" 2>/dev/null
	done
}

# end_all GRACE ends what runs of the engine; left is what does not end.
end_all() {
	k_waited=0
	look
	signal TERM
	while [ -n "$k_left" ] && [ "$k_waited" -lt "$1" ] && ! [ -e "$k_d/hurry" ]; do
		nap
		look
	done
	k_waited=0
	while [ -n "$k_left" ] && [ "$k_waited" -lt 10000 ]; do
		signal KILL # again: a process may have forked in between
		nap
		look
	done
}

# clean removes the directory of this keeper, again where another part of it has just
# left a mark there.
clean() {
	k_tries=0
	until rm -rf "$k_d" 2>/dev/null || [ "$k_tries" -gt 50 ]; do
		k_tries=$((k_tries + 1))
		sleep 0.1 2>/dev/null || sleep 1
	done
}

say_each() { # WORD: of what is left
	for k_p in $k_left; do
		look_at "$k_p" && say "$1 $k_p $k_name"
	done
}

# finish GRACE ends the engine of this keeper, also when it is just being started.
finish() {
	mark stopping
	k_waited=0
	until [ -s "$k_d/pid" ] || [ -e "$k_d/exited" ] || [ "$k_waited" -gt 5000 ]; do
		nap
	done
	k_pid='' k_began=''
	{ read -r k_pid k_began < "$k_d/pid"; } 2>/dev/null
	end_all "$1"
	[ -n "$k_left" ] || rm -rf "$k_d/files"
}

# listens PORT tells whether somebody accepts connections there.
listens() {
	k_hex=$(printf '%04X' "$1")
	grep -qsE "^ *[0-9]+: [0-9A-F]+:$k_hex [0-9A-F]+:[0-9A-F]+ 0A " /proc/net/tcp /proc/net/tcp6
}

# stop GRACE PORT is finish, with a report.
stop() {
	finish "$1"
	k_waited=0
	until [ -e "$k_d/said" ] || [ "$k_waited" -gt 2000 ]; do
		nap
	done
	say_each left
	[ -n "$k_left" ] || clean
	[ "$2" -gt 0 ] && listens "$2" && say "served $2"
	say done
}

# read_orders reads what perflab says until it says no more.
read_orders() {
	k_n=0 k_finisher=''
	while read -r k_word k_one k_two; do
		case $k_word in
		beat)
			k_n=$((k_n + 1))
			{ echo "$k_n" > "$k_d/beat"; } 2>/dev/null
			say beat
			;;
		stop)
			if [ -z "$k_finisher" ]; then
				stop "$k_one" "$k_two" &
				k_finisher=$!
			fi
			;;
		kill) mark hurry ;;
		esac
	done
	if [ -n "$k_finisher" ]; then
		wait "$k_finisher"
	else
		finish "$k_grace"
		[ -n "$k_left" ] || clean
	fi
}

# watch ends the engine when perflab is silent, and when a part of the keeper has
# been killed.
watch() {
	k_step=$((k_limit / 5)) k_last='' k_quiet=0
	[ "$k_step" -gt 0 ] || k_step=1
	while sleep "$k_step" > /dev/null 2>&1 < /dev/null; [ -d "$k_d" ]; do
		k_now=''
		{ read -r k_now < "$k_d/beat"; } 2>/dev/null
		k_quiet=$((k_quiet + k_step))
		[ "$k_now" = "$k_last" ] || k_quiet=0
		k_last=$k_now
		if ! kill -s 0 "$k_keeper" 2>/dev/null; then
			finish "$k_grace"
			say "exit 137"
			clean
			return
		fi
		if [ "$k_quiet" -ge "$k_limit" ] || ! look_at "$k_reader"; then
			finish "$k_grace"
			[ -n "$k_left" ] || clean
			break
		fi
	done
	sleep 2 > /dev/null 2>&1 < /dev/null # for what is being said
	kill -s KILL "$k_reader" "$k_keeper" 2>/dev/null
}

# program NAME says why a command cannot be run.
program() {
	case $1 in
	*/*)
		[ -e "$1" ] || { say "refused missing"; return 1; }
		[ -x "$1" ] || { say "refused mode"; return 1; }
		;;
	*) command -v -- "$1" > /dev/null || { say "refused unknown"; return 1; } ;;
	esac
}

# read_job reads shell text.
read_job() {
	k_job=''
	while IFS= read -r k_line; do
		[ "$k_line" = "#end $k_word" ] && return
		k_job=$k_job$k_line$k_newline
	done
	return 1
}

# become starts the job in this process. The directory for files is new and
# nobody else's.
become() {
	eval "$k_job"
	program "$k_name0" || exit 127
	look_at self
	k_pid=${k_line%% *}
	echo "$k_pid $k_start" > "$k_d/pid"
	[ -e "$k_d/stopping" ] && exit 143
	say "started $k_pid $k_start $(boot_id)"
	umask "$k_umask_was"
	exec $k_setsid "$@" < /dev/null 2>&1 3<&-
}

file() { # NAME TEXT
	printf '%s' "$2" > "$k_d/files/$1" || { say "refused write $k_d"; exit 126; }
}

enter() { # DIRECTORY
	cd -- "$1" || { say "refused directory $1"; exit 126; }
}

make_dir() {
	for k_base in "${TMPDIR:-/tmp}" "$HOME/.cache" /tmp; do
		[ "$k_base" = "$HOME/.cache" ] && mkdir -p "$k_base" 2>/dev/null
		k_d=$(mktemp -d "$k_base/perflab-keeper.XXXXXXXXXX" 2>/dev/null) && mkdir "$k_d/files" && return
	done
	say "refused write ${TMPDIR:-/tmp}"
	exit 126
}

keep() {
	exec 3<&0 < /dev/null
	make_dir
	say "dir $k_d"
	read_job <&3 || { rm -rf "$k_d"; exit 1; }
	k_keeper=$$
	read_orders <&3 &
	k_reader=$!
	watch 3<&- &
	k_watcher=$!
	(become)
	k_code=$?
	{ read -r k_pid k_began < "$k_d/pid"; } 2>/dev/null
	mark exited
	[ -z "$k_pid" ] || [ -e "$k_d/stopping" ] || kill -s KILL -- "-$k_pid" 2>/dev/null
	say "exit $k_code"
	mark said
	wait "$k_reader"
	kill "$k_watcher" 2>/dev/null
}

# run passes a command's output through until it ends or nobody reads any more.
run() {
	exec 3<&0 < /dev/null
	read_job <&3 || exit 1
	{
		eval "$k_job"
		program "$k_name0" || exit 0
	} >&2
	umask "$k_umask_was"
	$k_setsid "$@" 3<&- &
	k_child=$!
	(
		while read -r k_line; do :; done
		[ -n "$k_setsid" ] && k_child=-$k_child
		kill -s TERM -- "$k_child"
		sleep 1
		kill -s KILL -- "$k_child"
	) <&3 > /dev/null 2>&1 &
	k_watcher=$!
	wait "$k_child"
	k_code=$?
	kill "$k_watcher" 2>/dev/null
	say "exit $k_code" >&2
}

# end ends what an earlier keeper left running.
end() {
	k_d=$k_dir
	[ -z "$k_boot" ] || [ "$k_boot" = "$(boot_id)" ] || k_pid='' k_began=''
	look
	say_each found
	end_all "$k_grace"
	say_each left
	if [ -z "$k_left" ]; then
		case $k_dir in
		*/perflab-keeper.*) rm -rf -- "$k_dir" ;;
		esac
	fi
	say done
}

k_word=${k_tag#?}
k_word=${k_word%?}
k_newline=$(echo; echo .)
k_newline=${k_newline%.}
k_setsid=$(command -v setsid)
k_deep=$(printf 'a\0b\n' | grep -cF -e b)
[ "$k_deep" = 1 ] || k_deep=''
say ready
[ "$k_mode" = run ] && say ready >&2
"$k_mode"
