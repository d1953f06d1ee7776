package widget

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Tally does what bench/harness/tally.py does.
type Tally struct {
	lock   sync.Mutex
	file   *os.File
	wanted int
	sizes  map[string]int64
	counts map[int64]int
}

// newTally reads the environment that the bench sets.
func newTally() (*Tally, error) {
	wanted, err := strconv.Atoi(os.Getenv("BENCH_OBJECTS"))
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(os.Getenv("BENCH_TALLY"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &Tally{file: file, wanted: wanted, sizes: map[string]int64{}, counts: map[int64]int{}}, err
}

// Note says that the object was seen at this size; again at the same one does not count.
func (t *Tally) Note(name string, size int64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.sizes[name] != size {
		t.seen(name, size)
	}
}

// Handled says that the object was handled once more; its size is how often.
func (t *Tally) Handled(name string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.seen(name, t.sizes[name]+1)
}

func (t *Tally) seen(name string, size int64) {
	t.sizes[name] = size
	t.counts[size]++
	if count := t.counts[size]; count == 1 || count == t.wanted {
		fmt.Fprintf(t.file, "%d %d %.6f\n", size, count, float64(time.Now().UnixMicro())/1e6)
	}
}
