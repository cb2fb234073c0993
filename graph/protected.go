package graph

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// checkProtectedInput returns an error if the input of a run has something in a protected part.
func (fl *compiled) checkProtectedInput(input statePtr) error {
	for _, part := range fl.protected {
		if data, err := encodePart(part(input)); err != nil {
			return err
		} else if data != nil {
			return fmt.Errorf("%w: the input has records of decisions", fermata.ErrForgedIdentity)
		}
	}
	return nil
}

// sameProtected returns an error if an edited state has a protected part that differs from what was
// shown.
func (fl *compiled) sameProtected(shown, edited statePtr) error {
	for _, part := range fl.protected {
		before, err := encodePart(part(shown))
		if err != nil {
			return err
		}
		after, err := encodePart(part(edited))
		if err != nil {
			return err
		}
		if !bytes.Equal(before, after) {
			return fmt.Errorf("%w: the records of decisions cannot be edited", fermata.ErrForgedIdentity)
		}
	}
	return nil
}

// encodePart returns the JSON of a part of the state, or nil if it is empty.
func encodePart(part any) ([]byte, error) {
	data, err := json.Marshal(part)
	switch string(data) {
	case "null", "[]", "{}", `""`:
		return nil, err
	}
	return data, err
}

// checkProtected checks an edited state before the answer is saved.
func (fl *compiled) checkProtected(saved *checkpoint, frameAt string, place fermata.Address, answer []byte) error {
	if len(place) > 1 {
		inner, first, rest := fl.descend(place)
		if inner == nil || len(rest) == 0 {
			return nil // a graph that the node's own code runs checks it when the hold is released
		}
		return inner.checkProtected(saved, activation.Join(frameAt, first), rest, answer)
	}
	if len(fl.protected) == 0 || saved == nil || len(place) == 0 {
		return nil
	}
	task := saved.at(activation.Join(frameAt, place.String())).task
	if task == nil {
		return nil
	}
	shown, err := fl.readState(saved, frameAt, task)
	if err != nil {
		return err
	}
	edited, err := decodeState(fl.stateType, answer)
	if err != nil {
		return err
	}
	return fl.sameProtected(shown, edited)
}
