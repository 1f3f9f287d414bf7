// Questions kept ready, with their images, so that the next one is there at once.

import { get } from "./api.js";
import { imageAddress } from "./items.js";

const AHEAD = 3;
export const SIZE = 320; // of the images in a question

const preload = (item) => {
  if (item.image) new Image().src = imageAddress(item, SIZE);
};

export class Questions {
  constructor() {
    this.ready = [];
  }

  /** The next question; null where the server has none. */
  async next() {
    if (!this.ready.length) await this.fill();
    const question = this.ready.shift() ?? null;
    if (this.ready.length < AHEAD) this.fill(question).catch(() => {}); // asked again when the last one is gone
    return question;
  }

  /** This one comes next again. */
  back(question) {
    this.ready.unshift(question);
  }

  /** Ask for more than wait already; `shown` is on the screen. */
  fill(shown = null) {
    this.filling ??= this.more(shown).finally(() => { this.filling = null; });
    return this.filling;
  }

  async more(shown) {
    const skip = [shown, ...this.ready].filter(Boolean).map((question) => question.anchor.row);
    const { questions } = await get("/api/questions", { count: AHEAD, skip });
    for (const question of questions) {
      for (const item of [question.anchor, question.left, question.right]) preload(item);
      this.ready.push(question);
    }
  }
}
