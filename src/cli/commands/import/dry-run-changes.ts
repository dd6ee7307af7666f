/* Shows what a dry run of an import would change: as data, as lines of text, or the first ones. */

import { assertDefined } from '../../../errors.js'
import {
  createStyle,
  describeChange,
  describePlant,
  type Style,
  writeStdout,
} from '../../../output/output.js'
import { groupDigits, haveEqualNameAndTag, type StoredPlant } from '../../../plant/plant.js'
import type { Outcome } from '../../../stores/change.js'
import type { CommandContext } from '../../context.js'
import { createPrinter } from '../../print.js'

/** A plant that would be created, changed or deleted, as programs get it. */
interface PlannedChange {
  change: 'create' | 'update' | 'delete'
  id: bigint
  before?: StoredPlant
  after?: StoredPlant
}

export interface DryRunChanges {
  /** Shows the changes of a chunk. */
  add(outcomes: readonly Outcome[]): Promise<void>
  /** Shows what is left when all chunks are added. */
  end(): Promise<void>
}

/** @param isPreview whether the dialogue shows the changes, and not the command itself */
export async function showDryRunChanges(
  context: CommandContext,
  isPreview: boolean,
): Promise<DryRunChanges | undefined> {
  const { output, io } = context
  const isText = isPreview || output === 'text'
  if (!isText && output !== 'ndjson') return undefined
  const stream = isPreview ? io.stderr : io.stdout
  const style = await createStyle(context, stream)
  if (isText && stream.isTerminal)
    return collectFirstChanges(style, (text) =>
      isPreview ? stream.write(text) : writeStdout(io, text),
    )
  const formatLines = (changes: PlannedChange[]) =>
    changes.map((change) => `${describePlannedChange(change, style)}\n`).join('')
  const printer = createPrinter({ text: formatLines }, context)
  return {
    add: (outcomes) => printer.printRows(toPlannedChanges(outcomes)),
    end: async () => undefined,
  }
}

/** Of each kind, a person sees at most this many changes. */
export const maxShownChanges = 5

/** Shows the first changes of each kind at the end, and first those that lose something. */
function collectFirstChanges(style: Style, write: (text: string) => Promise<void>): DryRunChanges {
  const kinds = {
    delete: { participle: 'deleted', count: 0, lines: [] as string[] },
    update: { participle: 'updated', count: 0, lines: [] as string[] },
    create: { participle: 'created', count: 0, lines: [] as string[] },
  }
  return {
    async add(outcomes) {
      for (const planned of toPlannedChanges(outcomes)) {
        const kind = kinds[planned.change]
        kind.count += 1
        if (kind.count <= maxShownChanges) kind.lines.push(describePlannedChange(planned, style))
      }
    },
    async end() {
      const shownLines = Object.values(kinds).flatMap(({ participle, count, lines }) =>
        count > lines.length ? [...lines, describeMore(count - lines.length, participle)] : lines,
      )
      await write(shownLines.map((line) => `${line}\n`).join(''))
    },
  }
}

export function describeMore(count: number, participle: string): string {
  return `… and ${groupDigits(count)} more would be ${participle}`
}

function toPlannedChanges(outcomes: readonly Outcome[]): PlannedChange[] {
  return outcomes.flatMap((outcome) => toPlannedChange(outcome) ?? [])
}

/** Returns undefined for what changes nothing, and for an update of a plant that was not read. */
function toPlannedChange(outcome: Outcome): PlannedChange | undefined {
  if (!('plant' in outcome)) return undefined
  const { type, plant } = outcome
  const { id } = plant
  if (type === 'created') return { change: 'create', id, after: plant }
  if (type === 'deleted') return { change: 'delete', id, before: plant }
  const { before } = outcome
  if (!before || haveEqualNameAndTag(before, plant)) return undefined
  return { change: 'update', id, before, after: plant }
}

function describePlannedChange({ change, before, after }: PlannedChange, style: Style): string {
  return before && after
    ? describeChange('Would update', before, after, style)
    : `Would ${change} ${describePlant(assertDefined(after ?? before), style)}`
}
