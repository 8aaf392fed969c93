package console

import (
	"errors"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagErrors(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"bench", "--modle", "x", "--num-prompts", "many", "--seed=-1", "--wait", "soon", "--fast=perhaps", "--rate", "2x"}, `unknown flag: --modle: did you mean --model?
--num-prompts is "many": it must be a whole number
--seed is "-1": it must be a whole number from 0
--wait is "soon": it must be a time such as 90s or 5m
--fast is "perhaps": it must be true or false
--rate is "2x": it must be a number`},
		{[]string{"--disable-tqdm", "--fast", "--model"}, "unknown flag: --disable-tqdm\n--model needs a value"},
		{[]string{"--zzz", "--", "--also"}, "unknown flag: --zzz"},
		{[]string{"-x"}, "the first"},
		{[]string{"--model", "--num-prompts"}, "the first"}, // a value that looks like a flag is one
	} {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		fs.String("model", "", "")
		fs.Int("num-prompts", 0, "")
		fs.Uint64("seed", 0, "")
		fs.Duration("wait", 0, "")
		fs.Bool("fast", false, "")
		fs.Float64("rate", 0, "")
		err := FlagErrors(fs, tt.args, errors.New("the first"))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q:\n%v\nwant\n%s", tt.args, err, tt.want)
		}
	}
}
