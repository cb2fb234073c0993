package txn

import (
	"encoding/json"

	"github.com/fermata-go/fermata/internal/store"
)

// AddIndexed files the change of a paper, with its facts.
func (c *Tx) AddIndexed(paper store.DocumentChange, facts any) (err error) {
	if paper.Index, err = json.Marshal(facts); err == nil {
		c.Documents = append(c.Documents, paper)
	}
	return err
}
