package conversation

import "sync"

// watchers tells subscribers in this process that a conversation has changed.
type watchers struct {
	mu   sync.Mutex
	byID map[string][]chan struct{}
}

// Watch returns hints that a conversation may have changed in this process. Several changes may
// cause one hint. Changes by other processes cause none: read the conversation from time to time as
// well.
func (h *Handler) Watch(account, id string) (changed <-chan struct{}, stop func()) {
	w, key, ch := &h.watchers, account+"\x00"+id, make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = make(map[string][]chan struct{})
	}
	w.byID[key] = append(w.byID[key], ch)
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		left := w.byID[key][:0:0]
		for _, other := range w.byID[key] {
			if other != ch {
				left = append(left, other)
			}
		}
		if w.byID[key] = left; len(left) == 0 {
			delete(w.byID, key)
		}
	}
}

func (w *watchers) changed(account, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.byID[account+"\x00"+id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
