package client

import (
	"context"
	"sync"
)

// remembered bounds a ReceiverMemory: events, and uploads.
const remembered = 100_000

// ReceiverMemory is the ReceiverStore that ends with its process. It forgets the oldest beyond 100,000 events and as many uploads.
type ReceiverMemory struct {
	mu        sync.Mutex
	events    map[string]bool
	sequences map[string]int64
	eventAge  []string // oldest first
	uploadAge []string
}

// NewReceiverMemory makes an empty one.
func NewReceiverMemory() *ReceiverMemory {
	return &ReceiverMemory{events: map[string]bool{}, sequences: map[string]int64{}}
}

// Seen tells whether an event was noted.
func (m *ReceiverMemory) Seen(_ context.Context, eventID string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.events[eventID], nil
}

// Sequence is the highest noted of an upload.
func (m *ReceiverMemory) Sequence(_ context.Context, uploadID string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sequences[uploadID], nil
}

// Note keeps both.
func (m *ReceiverMemory) Note(_ context.Context, eventID, uploadID string, sequence int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if eventID != "" && !m.events[eventID] {
		m.events[eventID] = true
		if m.eventAge = append(m.eventAge, eventID); len(m.eventAge) > remembered {
			delete(m.events, m.eventAge[0])
			m.eventAge = m.eventAge[1:]
		}
	}
	if sequence == 0 {
		return nil
	}
	if _, known := m.sequences[uploadID]; !known {
		if m.uploadAge = append(m.uploadAge, uploadID); len(m.uploadAge) > remembered {
			delete(m.sequences, m.uploadAge[0])
			m.uploadAge = m.uploadAge[1:]
		}
	}
	m.sequences[uploadID] = max(sequence, m.sequences[uploadID])
	return nil
}
