/*
 * Reads which sheets an Excel workbook has, and what the cells of all sheets share: the strings,
 * the formats and the first day of the calendar.
 *
 * The parts of a workbook have no fixed paths. The relations of a part, which are in a separate
 * part, list the paths of the parts to which it refers. For example, `_rels/.rels` has the path of
 * the main part, and `xl/_rels/workbook.xml.rels` has the paths of the sheets (ECMA-376 part 2).
 */
import { posix } from 'node:path'
import type { Row } from '../reader.js'
import { type Archive, foldPath } from './archive.js'
import { createTooLargeError, DamageError } from './damage.js'
import type { RowBuilder, RowOptions } from './row-builder.js'
import { RowReader } from './rows.js'
import { readSharedStrings } from './shared-strings.js'
import { readStyles } from './styles.js'
import { type Attributes, type ElementHandler, parseWholePart } from './xml.js'

export interface Sheet {
  name: string
  isHidden: boolean
  /** The path of the part with the cells; undefined for a sheet without cells, such as a chart. */
  path: string | undefined
  /** The first rows, if they were read together with the list of sheets. */
  head?: readonly Row[]
}

export interface Workbook {
  sheets: readonly Sheet[]
  /** Creates a reader for the part of a sheet. */
  createRowReader(sheet: Sheet, options: RowOptions): RowBuilder & ElementHandler
}

/**
 * Reads the main part of a workbook and the parts that all sheets share.
 *
 * @throws {DamageError} if the workbook refers to a part that does not exist
 */
export async function readWorkbook(archive: Archive): Promise<Workbook> {
  const [main] = (await readRelations('', archive)).filter(({ type }) => type === 'officeDocument')
  if (!main) throw new DamageError('it has no workbook part, which lists the sheets')
  archive.assertSize(main.path)
  const reader = new MainPartReader(archive.file)
  const { sheets, is1904 } = await parseWholePart(archive, main.path, reader)
  const relations = await readRelations(main.path, archive)
  const findOnly = (type: string) => findOnlyPath(relations, type)
  const [stringsPath, stylesPath] = [findOnly('sharedStrings'), findOnly('styles')]
  for (const path of [stringsPath, stylesPath]) if (path !== undefined) archive.assertSize(path)
  const context = {
    sharedStrings: stringsPath === undefined ? [] : await readSharedStrings(archive, stringsPath),
    dateKinds: stylesPath === undefined ? [] : await readStyles(archive, stylesPath),
    is1904,
  }
  return {
    sheets: locateSheets(sheets, relations, archive),
    createRowReader: (_, options) => new RowReader(options, context),
  }
}

/** How a part refers to another one (ECMA-376 part 2, 9.3). */
interface Relation {
  id: string
  /**
   * The last segment of the URI of its type, such as `worksheet`. The rest of the URI differs
   * between the two variants of the standard, Transitional and Strict.
   */
  type: string
  path: string
}

/** @param path the path of the part that has the relations; empty for the archive as a whole */
async function readRelations(path: string, archive: Archive): Promise<Relation[]> {
  const folder = posix.dirname(path)
  const relationsPath = posix.join(folder, '_rels', `${posix.basename(path)}.rels`)
  archive.assertSize(relationsPath)
  const relations: Relation[] = []
  await parseWholePart(archive, relationsPath, {
    openElement(name, { Id: id = '', Type: uri = '', Target: target = '', TargetMode: mode }) {
      const type = uri.slice(uri.lastIndexOf('/') + 1)
      const isInArchive = mode !== 'External'
      if (name !== 'Relationship' || !isInArchive) return
      const folderOrRoot = target.startsWith('/') ? '' : folder
      relations.push({ id, type, path: posix.join('/', folderOrRoot, target).slice(1) })
      if (relations.length > maxRelations) throw createTooLargeError(archive.file)
    },
  })
  return relations
}

/**
 * Finds the path of the only part of a type. Excel writes one relation of each of these types. If a
 * workbook had two, another program might read the other part, and show other strings than this
 * program would import.
 *
 * @throws {DamageError} if there are several parts of the type
 */
function findOnlyPath(relations: readonly Relation[], type: string): string | undefined {
  const [relation, duplicate] = relations.filter((candidate) => candidate.type === type)
  if (duplicate) throw new DamageError(`it has two parts of the type ${type}`)
  return relation?.path
}

interface NamedSheet {
  name: string
  isHidden: boolean
  relationId: string | undefined
}

class MainPartReader implements ElementHandler {
  readonly sheets: NamedSheet[] = []
  is1904 = false

  constructor(private readonly file: string) {}

  openElement(name: string, attributes: Attributes, parents: readonly string[]): void {
    // An extension, which is deeper in the part, may have an element with this name, too.
    if (name === 'workbookPr' && parents.length === 1) this.#readProperties(attributes)
    const { name: sheet = '', state = 'visible' } = attributes
    if (name !== 'sheet' || !parents.includes('sheets')) return
    const isHidden = state !== 'visible'
    this.sheets.push({ name: sheet, isHidden, relationId: findRelationId(attributes) })
    if (this.sheets.length > maxSheets) throw createTooLargeError(this.file)
  }

  /**
   * Reads the year from which the workbook counts its days, 1900 or 1904. Every date depends on the
   * year, so a value that is not valid is damage, and is not replaced by a default.
   */
  #readProperties({ date1904 = '0' }: Attributes): void {
    if (!/^(?:0|1|false|true)$/.test(date1904))
      throw new DamageError(
        `its date system (date1904) has the invalid value ${JSON.stringify(date1904)}`,
      )
    this.is1904 = date1904 === '1' || date1904 === 'true'
  }
}

/** The attribute is called `r:id`, but a file may choose another prefix than `r`. */
function findRelationId(attributes: Attributes): string | undefined {
  const name = Object.keys(attributes).find((candidate) => candidate.endsWith(':id'))
  return name === undefined ? undefined : attributes[name]
}

/**
 * Finds the parts of the sheets. Each sheet must have a part of its own: the sizes in the directory
 * of the archive limit the time of an import only if no part is read for thousands of sheets.
 */
function locateSheets(
  sheets: readonly NamedSheet[],
  relations: readonly Relation[],
  archive: Archive,
): Sheet[] {
  const relationsById = new Map(relations.map((relation) => [relation.id, relation]))
  if (relationsById.size < relations.length) throw new DamageError('two relations have one id')
  const paths = new Set<string>()
  return sheets.map(({ name, isHidden, relationId }) => {
    const relation = relationId === undefined ? undefined : relationsById.get(relationId)
    if (!relation) throw new DamageError(`the sheet ${JSON.stringify(name)} refers to no part`)
    const { type, path } = relation
    if (!archive.has(path)) throw new DamageError(`${path} is missing`)
    if (type !== 'worksheet') return { name, isHidden, path: undefined }
    const foldedPath = foldPath(path)
    if (paths.has(foldedPath)) throw new DamageError(`two sheets have the part ${path}`)
    paths.add(foldedPath)
    return { name, isHidden, path }
  })
}

/** LibreOffice allows this many sheets, and Excel as many as there is memory for. */
export const maxSheets = 10_000
const maxRelations = 100_000
