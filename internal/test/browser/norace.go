//go:build !race

package browser

const raced = false // the tests run under the race detector
