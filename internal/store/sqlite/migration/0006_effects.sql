-- Nobody looks for effects by how they ended: they are found by their interrupt.
DROP INDEX effects_in_doubt;
