package graph

// entryRank orders the tasks of an instance: tasks with a lower rank run first.
type entryRank int

const (
	rankFirst   entryRank = iota
	rankWaited            // a node of LatestState that has waited: its answer may change the state
	rankNewest            // a node of LatestState that has not asked yet
	rankNothing           // above all ranks
)

func (inst *instance) rank(t *task) entryRank {
	switch {
	case !inst.flow.nodes[t.node].latest:
		return rankFirst
	case t.loaded:
		return rankWaited
	}
	return rankNewest
}

// useLatestState gives the newest state to nodes of LatestState that are about to be entered. The
// lock must be held.
func (inst *instance) useLatestState(ready []*task) {
	for _, t := range ready {
		if inst.flow.nodes[t.node].latest && t.base != inst.state { //mutate:gate-gets-newest-state
			inst.rebase(t)
		}
	}
}

// refreshLatest makes nodes of LatestState ready that wait with an older state. One that asked in
// this execution is refreshed by the next one, before an answer counts. The lock must be held.
func (inst *instance) refreshLatest() error {
	for _, t := range inst.tasks {
		if t.status != taskWaiting || !inst.flow.nodes[t.node].latest || !t.loaded || t.signals != nil || t.base == inst.state {
			continue
		}
		changed, err := inst.editedFields(t.base, inst.state)
		if err != nil {
			return err
		}
		if len(changed) > 0 { //mutate:changed-gate-asked-again
			t.status = taskReady
			inst.rebase(t)
		}
	}
	return nil
}

// rebase gives a task the newest state. The lock must be held.
func (inst *instance) rebase(t *task) {
	t.baseClock, t.base = inst.clock, inst.state
	clear(inst.mergedFields) // from here on the state is shared
	inst.markTaskDirty(t)
}
