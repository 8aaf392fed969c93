#!/bin/sh
# scripts/module-path.sh PATH: gives the module another path, that of its home, from which
# go install PATH/cmd/perflab@latest then works. Names of packages in documents stay.
set -eu
test $# = 1 || { echo "usage: scripts/module-path.sh HOST/OWNER/perflab" >&2; exit 2; }
cd "$(dirname "$0")/.."
old=$(go list -m)
go mod edit -module "$1"
git ls-files '*.go' | grep -v '^cmd/perflab/deps_test.go$' | xargs sed -i "s#\"$old/\(internal/\|docs\"\|cmd/\)#\"$1/\1#g"
sed -i "s#^const ours = \"$old/\"#const ours = \"$1/\"#" cmd/perflab/deps_test.go
sed -i "s#/$old\\\\/internal#/$(echo "$1" | sed 's#/#\\\\/#g')\\\\/internal#" Makefile
gofmt -w cmd docs internal scripts
