package desk

import (
	"fmt"
	"slices"

	"github.com/fermata-go/fermata/internal/requirement"
)

// openStage returns the open stage as of the last vote: its groups decide now.
func (r Request) openStage() int {
	stages := r.Requirement.Stages()
	return stages[min(max(r.VoteProgress.Stage, 1), len(stages))-1]
}

// openStage returns the open stage as of now. If people answer differently, it is that of the
// answer with the most progress.
func (d *update) openStage() (int, error) {
	stages := d.r.Requirement.Stages()
	open := stages[0]
	if len(stages) == 1 {
		return open, nil
	}
	for _, v := range d.r.Votes {
		if v.Verb == requirement.VerbReject {
			continue
		}
		t, err := d.countVotes(v.Verb, v.Choice)
		if err != nil {
			return open, err
		}
		open = max(open, t.stage)
	}
	return open, nil
}

// checkStage refuses a person whose groups all belong to a later stage than the open one.
func (d *update) checkStage(person string, open int) error {
	stages := d.r.Requirement.Stages()
	if open == stages[len(stages)-1] {
		return nil
	}
	for _, g := range d.r.Requirement.Groups {
		if g.Stage > open {
			continue
		}
		if in, err := d.isMember(g, person); in || err != nil {
			return err
		}
	}
	return d.refuse(ErrEarlierStage, fmt.Sprintf("stage %d of %d is open: %s", slices.Index(stages, open)+1, len(stages), d.r.groupsAt(open)))
}

// groupsAt names the groups of a stage.
func (r Request) groupsAt(stage int) string {
	text := ""
	for _, g := range r.Requirement.Groups {
		if g.Stage == stage {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d × %s", g.People(), g.Names())
		}
	}
	return text
}

// noteStage notifies the people of the stage that the last vote opened.
func (d *update) noteStage(before int) {
	now := d.r.VoteProgress.Stage
	if d.r.State != StateOpen || now <= before {
		return
	}
	d.logEvent(EventStageOpened, fmt.Sprintf("opened stage %d of %d: %s", now, d.r.VoteProgress.Stages, d.r.groupsAt(d.r.openStage())), nil)
	d.addNotice(NoticeNotify, EventStageOpened, d.r.approverTargets())
}
