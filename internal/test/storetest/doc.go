// Package storetest makes directories of results for tests, by the thousand where one is wanted, and
// holds an index against what it promises: the conformance suite that each database passes.
package storetest
