package console

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// OptionalFloat is a flag's number that is nil unless the flag is given.
func OptionalFloat(to **float64) pflag.Value {
	return optional[float64]{to, "float", func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }}
}

// OptionalInt is a flag's whole number that is nil unless the flag is given.
func OptionalInt(to **int) pflag.Value { return optional[int]{to, "int", strconv.Atoi} }

// optional is a flag's value that may be absent, which is not zero.
type optional[T any] struct {
	to    **T
	kind  string
	parse func(string) (T, error)
}

// Set keeps a value.
func (o optional[T]) Set(text string) error {
	v, err := o.parse(text)
	if err != nil {
		return fmt.Errorf("%q is no number", text)
	}
	*o.to = &v
	return nil
}

// String is the value; "" for none.
func (o optional[T]) String() string {
	if o.to == nil || *o.to == nil {
		return ""
	}
	return fmt.Sprint(**o.to)
}

// Type is how help texts name a value.
func (o optional[T]) Type() string { return o.kind }
