// Package datafile reads the rows of data files as they are published: Parquet, JSON
// and JSON Lines, alone or as the splits of a dataset's directory.
//
//	files, err := datafile.Find(dir, "main", "test")
//	n, err := datafile.Count(files[0])
//	for row, err := range datafile.Rows(files[0], []int{3, 7}) { ... }
//
// Invariants: a row is what encoding/json would make of it, whatever the file's format;
// a damaged file is an error. Deliberately absent: CSV, Arrow and compressed text, and
// what datasets are about. It is a package of its own because it needs the library for
// Parquet, and package workload shall not.
package datafile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
)

// Row is one row: strings, numbers, truth values, nil, lists ([]any) and objects
// (map[string]any) by the names of the columns.
type Row map[string]any

// Text is the string in a column.
func (r Row) Text(column string) (string, bool) {
	switch v := r[column].(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

// Extensions are those of files that are read.
func Extensions() []string { return []string{".parquet", ".jsonl", ".json"} }

// form is how a file has its rows.
type form int

const (
	lines form = iota
	array
	parquet
)

// formOf tells a file's form by how it begins.
func formOf(f *os.File) (form, error) {
	in := bufio.NewReader(io.NewSectionReader(f, 0, 1<<62))
	if head, _ := in.Peek(4); string(head) == "PAR1" {
		return parquet, nil
	}
	for {
		switch c, err := in.ReadByte(); {
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return lines, err
		case c == '[':
			return array, nil
		case c == '{':
			return lines, nil
		case c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != 0xef && c != 0xbb && c != 0xbf:
			return lines, errors.New("it is neither Parquet nor JSON")
		}
	}
}

// Count returns the number of rows.
func Count(path string) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("count the rows: %w", err)
	}
	defer f.Close()
	how, err := formOf(f)
	if err == nil && how == parquet {
		n, err = countParquet(f)
	} else if err == nil {
		err = eachJSON(f, how, func(json.RawMessage) (bool, error) {
			n++
			return true, nil
		})
	}
	if err != nil {
		return 0, fmt.Errorf("count the rows of %s: %w", filepath.Base(path), err)
	}
	return n, nil
}

// Rows yields the rows with the given numbers, which ascend from 0; an error is the
// last that it yields.
func Rows(path string, numbers []int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := rows(path, numbers, func(r Row) bool { return yield(r, nil) }); err != nil {
			yield(nil, fmt.Errorf("read %s: %w", filepath.Base(path), err))
		}
	}
}

func rows(path string, numbers []int, yield func(Row) bool) error {
	if len(numbers) == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	how, err := formOf(f)
	switch {
	case err != nil:
		return err
	case how == parquet:
		return parquetRows(f, numbers, yield)
	}
	at := 0
	err = eachJSON(f, how, func(raw json.RawMessage) (bool, error) {
		if at++; at-1 != numbers[0] {
			return true, nil
		}
		var r Row
		if err := json.Unmarshal(raw, &r); err != nil || r == nil {
			return false, fmt.Errorf("row %d is no JSON object", at)
		}
		numbers = numbers[1:]
		return yield(r) && len(numbers) > 0, nil
	})
	if err == nil && len(numbers) > 0 && at <= numbers[0] {
		err = fmt.Errorf("there is no row %d: it has %d", numbers[0]+1, at)
	}
	return err
}

// mostRow is the size of a row of JSON that is read.
const mostRow = 64 << 20

// eachJSON tells of each row until see wants no more.
func eachJSON(f *os.File, how form, see func(json.RawMessage) (more bool, err error)) error {
	if how == array {
		return eachElement(f, see)
	}
	in := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if !json.Valid(line) {
				return fmt.Errorf("line %d is no JSON object: is the file complete?", n)
			}
			if more, err := see(line); err != nil || !more {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// readLine reads a line of a size that a row may have.
func readLine(in *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := in.ReadSlice('\n')
		if whole = append(whole, part...); len(whole) > mostRow {
			return nil, fmt.Errorf("it has a line of more than %d MiB", mostRow>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return whole, err
		}
	}
}

func eachElement(f *os.File, see func(json.RawMessage) (more bool, err error)) error {
	dec := json.NewDecoder(f)
	if _, err := dec.Token(); err != nil { // the bracket, which formOf has seen
		return err
	}
	for n := 1; dec.More(); n++ {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return fmt.Errorf("row %d: %w: is the file complete?", n, err)
		}
		if more, err := see(raw); err != nil || !more {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("the list has no end: %w", err)
	}
	return nil
}
