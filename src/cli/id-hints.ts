/*
 * Explains arguments that are not ids, and lines that lack one.
 */
import { createValueError } from '../config/option-values.js'
import { createUsageError, type PlantsError } from '../errors.js'
import { idRule } from '../plant/fields.js'

/**
 * Whether a text begins with a dash that is not a hyphen. Word processors and chats change `--id`
 * to `–id`, and people copy commands from there.
 */
export function beginsWithLongDash(text: string): boolean {
  return /^[\u2010-\u2015\u2212]/.test(text)
}

export const hyphensHint = 'Options start with plain hyphens, as in --id: type them again'

export function createIdError(text: string): PlantsError {
  const { message } = createValueError('id', idRule, text)
  return createUsageError(message, chooseIdHint(text))
}

const findIdsHint = 'To find the ids: plants list --search TEXT'

/** In `plants update 3 --name Sword fern`, `fern` is taken for an id. */
const quoteNameHint = 'Write a name with spaces in quotes: "Sword fern"'

/** `local` is the store of a command for which nobody chose one. */
export const storeNote = '(STORE is local if you chose none)'

/** These hints say how a command gets ids from another command. The rest of its line stays. */
const rangeHint =
  'For a range, write - for the ids, with --yes to delete, and begin the line with: seq 1 5 |'
const allIdsHint =
  'To show all plants: plants list. To change or delete them, write - for the ids, ' +
  `with --yes to delete, and begin the line ${storeNote}: plants list --store STORE |`
const listedIdsHint =
  'For plants of a list, write - for the ids, ' +
  `and begin the line ${storeNote}: plants list --store STORE --tag TEXT |`

/** People take the tag in `plants update --tag shade` for a filter, as in other commands. */
export function formatMissingIdHint(name: string): string {
  return `Give one or more ids: plants ${name} 7 8. ${name === 'update' ? listedIdsHint : findIdsHint}`
}

/** Chooses a hint for a text that is not an id, by what the text probably was meant to be. */
function chooseIdHint(text: string): string {
  if (beginsWithLongDash(text)) return hyphensHint
  if (/[,;]|^\d+(?:-|\.\.+|:)\d+$/.test(text)) return `Separate ids by spaces: 1 2 3. ${rangeHint}`
  if (/^(?:all|\*)$/i.test(text)) return allIdsHint
  if (/^(?:\+|-?0)\d+$|^[-+]?\d+\.\d*$/.test(text))
    return 'Write an id in plain digits, without leading zeros, a plus sign or a point: 7'
  return /\p{L}/u.test(text) ? `${findIdsHint}. ${quoteNameHint}` : findIdsHint
}
