package main

import "slices"

// mutants returns all of them, layer by layer.
func mutants() []mutant {
	return slices.Concat(rootMutants, graphMutants, agentMutants, boxMutants, memoryMutants, sqliteMutants, postgresMutants, deskMutants, executorMutants)
}

// invariants is how many there are: I1 to I17.
const invariants = 17

// later names the invariants that no code here keeps yet, and who will. They get mutants together with their code.
var later = map[string]string{}
