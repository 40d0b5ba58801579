import type { HelpText } from "../Help.tsx";

export const HEAP_HELP: HelpText = {
  keys: [
    ["1 to 5", "the views; in the row of views, arrows go to all"],
    ["/", "search: the tables and the tree have the rows that match, the map marks them"],
    ['"Name"', "as a search: has exactly this name; in the tree and the map: is exactly of this class"],
    ["arrows", "move between rows; in the map: up and down between a box and what is in it, left and right beside it"],
    ["Enter", "opens a row, shows a holder's row in the map, zooms in"],
    ["Esc", "zooms out"],
    ["*", "in the tree: opens the path where most of it goes"],
    ["H", "in the map: shows the box in the tree of holders"],
    ["?", "this page"],
  ],
  words: [
    ["bytes", "of objects: their slots, and what they have from malloc."],
    ["retained", "what would go with them: their bytes, and those of all objects that nothing else holds."],
    ["holder", "a name by which objects are held: a constant, a variable, the stack of a thread."],
    ["site", "the method that has made objects, and its line. Sites are estimated from samples."],
    ["±", "one standard deviation of the estimate."],
    ["endpoint", "of the request or job for which the objects were made."],
    ["unreferenced", "objects that nothing refers to: the next collection frees them."],
  ],
  subject: "",
  facts: [],
};
