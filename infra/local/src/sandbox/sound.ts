/** Sound as the sandbox hears and makes it: one channel of 16-bit samples, least byte first, 24,000 a second. */
const RATE = 24_000;
const BYTES_A_MS = (RATE * 2) / 1_000;

export const msOf = (bytes: number): number => bytes / BYTES_A_MS;

/** A tone of so many milliseconds, which fades in and out. Each `pitch` has a tone of its own. */
export function tone(ms: number, pitch: number): Buffer {
  const samples = (ms * RATE) / 1_000;
  const sound = Buffer.alloc(samples * 2);
  const hertz = TONES[pitch % TONES.length] ?? 0;
  for (let at = 0; at < samples; at++) {
    const loudness = 3_000 * Math.sin((Math.PI * at) / samples);
    sound.writeInt16LE(Math.round(loudness * Math.sin((2 * Math.PI * hertz * at) / RATE)), at * 2);
  }
  return sound;
}

/** A scale of five tones. */
const TONES = [262, 294, 330, 392, 440];

/** A speech that begins or ends. `ms`: since the sound began. */
export type Heard = { readonly is: 'started' | 'stopped'; readonly ms: number };

/** Hears someone speak by how loud the sound is, as often as there is a frame of 20 ms. */
export class VoiceDetection {
  #rest: Buffer = Buffer.alloc(0);
  #ms = 0;
  /** For how long it has been loud, or silent while someone speaks. */
  #forMs = 0;
  #isSpeaking = false;

  /** @param silenceMs the silence that ends a speech */
  hear(sound: Buffer, silenceMs: number): Heard[] {
    const all = Buffer.concat([this.#rest, sound]);
    const heard: Heard[] = [];
    let at = 0;
    for (; at + FRAME <= all.length; at += FRAME) {
      this.#ms += FRAME_MS;
      const isLoud = loudness(all, at) > LOUD;
      this.#forMs = isLoud === this.#isSpeaking ? 0 : this.#forMs + FRAME_MS;
      if (this.#forMs < (this.#isSpeaking ? silenceMs : ONSET_MS)) continue;
      heard.push(
        this.#isSpeaking
          ? { is: 'stopped', ms: this.#ms }
          : { is: 'started', ms: Math.max(0, this.#ms - this.#forMs) },
      );
      this.#isSpeaking = !this.#isSpeaking;
      this.#forMs = 0;
    }
    this.#rest = all.subarray(at);
    return heard;
  }
}

const FRAME_MS = 20;
const FRAME = FRAME_MS * BYTES_A_MS;
/** A click is no speech. */
const ONSET_MS = 60;
/** Of 32,768. A room is more silent than this, and a voice louder. */
const LOUD = 500;

/** The square root of the mean of the squares of a frame. */
function loudness(sound: Buffer, from: number): number {
  let sum = 0;
  for (let at = from; at < from + FRAME; at += 2) sum += sound.readInt16LE(at) ** 2;
  return Math.sqrt(sum / (FRAME / 2));
}
