package sim

// queue is a double-ended queue; the zero value is empty.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }
func (q *queue[T]) front() T { return q.items[q.head] }

func (q *queue[T]) pushBack(v T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// pushFront is O(1) amortised: when no room is left before the head, as much
// is made as the queue is long.
func (q *queue[T]) pushFront(v T) {
	if q.head == 0 {
		n := q.len()
		grown := make([]T, 2*n+4)
		q.head = n + 4
		copy(grown[q.head:], q.items)
		q.items = grown
	}
	q.head--
	q.items[q.head] = v
}

func (q *queue[T]) popFront() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return v
}
