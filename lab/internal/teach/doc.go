// Package teach is the lesson: predict, run, look, explain.
//
// It promises a learner this much. Nothing runs before the predictions are
// sealed in the attempt file. What the run shows is looked at and said before
// the lab names a verdict. Every outcome then comes from the judged record of
// a real run: an outcome that could not be observed counts as neither right
// nor wrong. A lesson that is interrupted at any point, kill -9 included, goes
// on where it was: answers given are kept with every key, sealed predictions
// stay sealed, and a run that was cut short is run again.
//
// The package shows text and asks for keys; who gives them, a person or a
// file, it does not know. It reaches Podman only through Lab.
package teach
