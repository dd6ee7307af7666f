/** Makes every character visible that would move, colour or reorder what a terminal shows. */
export function visible(text: string): string {
  return text.replace(unsafe, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu
