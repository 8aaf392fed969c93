package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	pq "github.com/parquet-go/parquet-go"
)

// openParquet opens a file whose footer, which the library takes at its word, has room in
// it: its length stands before the last four bytes.
func openParquet(f *os.File) (file *pq.File, err error) {
	defer damaged(&err)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var end [8]byte
	size := info.Size()
	if size < 12 {
		return nil, fmt.Errorf("it has %d bytes, which is too short for Parquet", size)
	}
	if _, err := f.ReadAt(end[:], size-8); err != nil {
		return nil, err
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); n > size-12 {
		return nil, fmt.Errorf("it is damaged: a footer of %d bytes in a file of %d", n, size)
	}
	return pq.OpenFile(f, size)
}

// damaged makes an error of a panic of the library, which checks little of what a
// damaged file says of itself.
func damaged(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it is damaged (%v)", p)
	}
}

func countParquet(f *os.File) (int, error) {
	file, err := openParquet(f)
	if err != nil {
		return 0, err
	}
	return int(file.NumRows()), nil
}

// parquetBatch is how many rows are read at once. Rows between wanted ones are read too: to
// seek a row takes the library longer than to read hundreds.
const parquetBatch = 256

// parquetRows yields rows by number, out of the groups of rows that have any of them.
func parquetRows(f *os.File, numbers []int, yield func(Row) bool) error {
	file, err := openParquet(f)
	if err != nil {
		return err
	}
	first := 0
	for _, group := range file.RowGroups() {
		end := first + int(group.NumRows())
		n, _ := slices.BinarySearch(numbers, end)
		if n > 0 {
			if more, err := groupRows(group, first, numbers[:n], yield); err != nil || !more {
				return err
			}
		}
		numbers, first = numbers[n:], end
	}
	if len(numbers) > 0 {
		return fmt.Errorf("there is no row %d: it has %d", numbers[0]+1, first)
	}
	return nil
}

// groupRows yields rows of a group whose first row has the number at.
func groupRows(group pq.RowGroup, at int, numbers []int, yield func(Row) bool) (more bool, err error) {
	r, err := newGroupReader(group)
	if err != nil {
		return false, err
	}
	defer r.close()
	for len(numbers) > 0 {
		batch, err := r.next(min(parquetBatch, numbers[len(numbers)-1]+1-at))
		if err != nil {
			return false, fmt.Errorf("row %d: %w", at+1, err)
		}
		for len(numbers) > 0 && numbers[0] < at+len(batch) {
			row, ok := batch[numbers[0]-at].(map[string]any)
			if !ok {
				return false, fmt.Errorf("row %d has no columns", numbers[0]+1)
			}
			if numbers = numbers[1:]; !yield(row) {
				return false, nil
			}
		}
		at += len(batch)
	}
	return true, nil
}

// groupReader reads the rows of a group. Its methods return a panic of the library as an error.
type groupReader struct{ rows *pq.GenericReader[any] }

func newGroupReader(group pq.RowGroup) (r groupReader, err error) {
	defer damaged(&err)
	return groupReader{pq.NewGenericRowGroupReader[any](group)}, nil
}

// next returns the next rows, one at least and so many at most.
func (r groupReader) next(most int) (batch []any, err error) {
	defer damaged(&err)
	batch = make([]any, most) // the library leaves in it what it does not read
	n, err := r.rows.Read(batch)
	if n > 0 {
		return batch[:n], nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

func (r groupReader) close() {
	var err error
	defer damaged(&err) // after which there is nothing to close
	r.rows.Close()
}
