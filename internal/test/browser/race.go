//go:build race

package browser

const raced = true // the tests run under the race detector
