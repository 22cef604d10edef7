/** A document to try the app with. */

export const sample = {
  filename: "About the tides (sample).md",
  text: `# About the tides

The sea rises and falls twice in a little more than a day: from one high water to the next but one are 24 hours and 50 minutes. The fifty minutes are the moon's doing. While the earth turns once, the moon has gone on a little, and the coast needs that much longer to come under it again.

## What raises them

The moon pulls the water on the near side of the earth more than it pulls the earth itself, and the earth more than the water on the far side. So there are two swellings of the sea, one facing the moon and one turned away from it, and every coast passes through both.

The sun does the same with somewhat less than half the moon's force, for though it is far larger it is also far away.

## Spring tides and neap tides

At new moon and at full moon the sun and the moon pull along one line. High waters are then at their highest and low waters at their lowest: the spring tides, which have nothing to do with the season. A week later the two pull at right angles, and the difference is smallest: the neap tides.

## Where they are largest

The shape of the coast counts for more than the moon. In the Mediterranean one hardly sees a tide. In the Bay of Fundy, in Canada, the water rises by as much as sixteen metres, because the bay is of such a length that the water in it swings in time with the tide, like water in a bath.
`,
} as const;
