package main

import "slices"

// mutants returns all mutants that a test must catch.
func mutants() []mutant {
	return slices.Concat(rootMutants, graphMutants, agentMutants, secretMutants, memoryMutants, sqliteMutants, postgresMutants, deskMutants, executorMutants)
}

// invariants is the number of invariants: I1 to I17.
const invariants = 17
