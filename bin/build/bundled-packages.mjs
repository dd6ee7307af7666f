import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describePackage, formatSbom, sbomName } from './sbom.mjs'

const root = join(import.meta.dirname, '../..')

/**
 * A plugin that writes two files next to the bundle, both from the list of the packages in it:
 * their licences (THIRD-PARTY.txt), and the bill of materials.
 */
export const bundledPackages = {
  name: 'bundled-packages',
  generateBundle(_, bundle) {
    const folders = listPackageFolders(bundle)
    const introduction = 'plant-store contains code of these packages.\n'
    const source = [introduction, ...formatNotices(folders)].join('\n')
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY.txt', source })
    const bundled = folders.map((folder) => describePackage(readManifest(folder)))
    const sbom = formatSbom([...bundled, ...describeDriver()])
    this.emitFile({ type: 'asset', fileName: sbomName, source: sbom })
  },
}

/** Describes the package that npm installs with the program, and the SQLite that is in it. */
export function describeDriver() {
  const version = new DatabaseSync(':memory:').prepare('SELECT sqlite_version() AS v').get().v
  const purl = `pkg:generic/sqlite@${version}`
  const licenses = [{ expression: 'blessing' }]
  const sqlite = { type: 'library', 'bom-ref': purl, name: 'sqlite', version, purl, licenses }
  const driver = describePackage(readManifest(join(root, 'node_modules/@photostructure/sqlite')))
  return [driver, sqlite]
}

/** The bundler adds this module of its own, with helpers such as the one that loads CommonJS. */
const bundlerRuntime = { id: '\0rolldown/runtime.js', folder: join(root, 'node_modules/rolldown') }

/** Lists the folders of the packages of which code is in a bundle, each once. */
function listPackageFolders(bundle) {
  const chunks = Object.values(bundle).filter(({ type }) => type === 'chunk')
  const modules = chunks.flatMap((chunk) => Object.entries(chunk.modules))
  const rendered = modules.filter(([, { renderedLength }]) => renderedLength > 0)
  return [...new Set(rendered.flatMap(([id]) => findPackageFolder(id) ?? []))]
}

/** @returns undefined for a module of the program itself */
function findPackageFolder(id) {
  return id === bundlerRuntime.id ? bundlerRuntime.folder : packageFolder.exec(id)?.[0]
}

const packageFolder = /.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/

function readManifest(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (typeof license !== 'string')
    throw new Error(`${name} ${version} names no licence in its package.json`)
  return { name, version, license }
}

/**
 * Formats the licences of packages. Packages whose licences have the same text share a section,
 * which begins with a line for each of them.
 */
function formatNotices(folders) {
  const titlesByText = new Map()
  for (const folder of folders) {
    const { name, version, license } = readManifest(folder)
    const texts = readLicences(folder, name).map((text) => text.trim())
    if (texts.length === 0)
      texts.push(
        `The package ${name} carries no text of its licence, which it names as ${license}.`,
      )
    const text = texts.join('\n\n')
    // The same version of a package may be in two folders.
    const titles = titlesByText.get(text) ?? new Set()
    titlesByText.set(text, titles.add(`${name} ${version} (${license})`))
  }
  const sections = Array.from(titlesByText, ([text, titles]) =>
    [rule, ...[...titles].toSorted(), '', text, ''].join('\n'),
  )
  return sections.toSorted()
}

const rule = '-'.repeat(80)

/** The files here with licences that packages have in their repositories, but do not publish. */
const licencesByPackage = new Map([['saxes', 'saxes-licence.txt']])

/** Reads the files of a licence, or else the section "License" of a README, if it has the text. */
function readLicences(folder, name) {
  const read = (file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n')
  const names = readdirSync(folder)
  const files = names.filter((file) =>
    /^[^.]*(licen[cs]e|copying|notice)[^.]*(\.\w+)?$/i.test(file),
  )
  if (files.length > 0) return files.map(read)
  const storedLicence = licencesByPackage.get(name)
  if (storedLicence !== undefined)
    return [readFileSync(join(import.meta.dirname, storedLicence), 'utf8')]
  const readmes = names.filter((file) => /^readme/i.test(file)).map(read)
  return readmes
    .flatMap((readme) => readme.split(/^#+ */m))
    .filter((section) => /^licen[cs]e\b.*(permission|redistribution)/is.test(section))
    .map((section) => section.replace(/^.*/, ''))
}
