/**
 * Whether a text can be the name of a saved store. Wherever an address is expected, such a text is
 * a name: `--store garden` is the saved store, and a file of that name is `./garden`. `local` is
 * the default store, so nothing can be saved under it.
 */
export function isStoreName(text: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(text) && text !== 'local'
}
