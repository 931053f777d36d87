package teach

// lessonTexts are the lessons' short texts, by key.
var lessonTexts = map[string]string{
	"gone-when-it-restarts": `Every running program keeps part of what it knows in memory. When the process ends, that part is over: nobody has to delete it, it simply has no place any more.

Some of it is meant to go, such as a cache that can be filled again. Some of it is not, and nothing tells the two apart for you. Before you trust a program with something, ask what of it would still be there if the process ended now. In this lesson the process ends and the container stays.`,

	"the-writable-layer-is-temporary": `An image never changes while containers run from it. What a container writes goes to a layer of its own, on top of the image's layers, and no other container sees it.

That layer belongs to the container object, not to the process in it: it is there as long as podman ps --all lists the container. So two questions are worth asking of every event. Is the container still the same one afterwards? And where did the bytes lie?`,

	"disposable-on-purpose": `A container that is never repaired in place can't drift away from its image: when something is wrong, you throw it away and start another one from the same image. Ten of them are as easy as one.

This only works while nobody needs anything from the one you throw away. In this lesson you replace containers on purpose and look for what was not meant to be replaced.`,

	"mounting-something-that-lasts": `A mount puts storage from elsewhere at a path in the container. The program writes where it always wrote; the bytes lie somewhere that is not the container.

There are two everyday kinds. A named volume is kept by Podman beside its containers, under the name you gave it. A bind mount is a folder of the host. Which of them you use decides who looks after the bytes, and what has to happen for them to go.`,

	"keep-state-out-of-the-compute": `A volume outlives the container, but the next container still has to find that volume, on that machine. One step further, the program keeps nothing itself: it hands what must last to a service that is made for keeping, such as a database or an object store.

Then any number of equal containers can do the work, and any of them can go at any time. What you look at in this lesson is where the bytes are when the container that wrote them is not there.`,

	"virtual-machines-lose-it-too": `A virtual machine has the same question one level down. Go back to a snapshot, and what was written after it never happened. Stop a cloud machine, and its local scratch disk may be another one when it starts again.

The names differ and the question stays: which storage comes with the thing that gets replaced, and which was only connected to it?`,

	"designing-so-restarts-are-safe": `A program is safe to restart when a new copy can go on from what is stored outside the old one. Try it in thought: this instance ends now, without warning. Whatever only it had is the loss.

How something is written matters too. A file that is rewritten in place can be caught half-way; a copy that is finished first and then renamed can't.`,

	"why-your-agent-forgot-everything": `An agent reads a task, collects notes and writes files, in a container. The next day it runs again in a new container and starts from nothing. No part of it failed: its notes lay in the layer of a container that is gone.

Now you know the question to ask of it, and of every service you rebuild to update it: when this is replaced, what goes with it, and is what I need somewhere else?`,
}

// LessonText is a lesson's short text, paragraphs apart by an empty line; ""
// for a key that is none.
func LessonText(key string) string { return lessonTexts[key] }
