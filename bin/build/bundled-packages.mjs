import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const own = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))

/**
 * A plugin that writes what is bundled beside the bundle, both from one list: the licences of the
 * packages (THIRD-PARTY.txt), and a bill of materials that scanners read (CycloneDX 1.6). `npm sbom`
 * cannot write it: it knows what is installed, which is less or more than what is bundled.
 */
export const bundledPackages = {
  name: 'bundled-packages',
  generateBundle(_, bundle) {
    const folders = findFolders(bundle)
    const notices = sortUnique(folders.map(formatNotice))
    const source = ['plant-store contains code of these packages.\n', ...notices].join('\n')
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY.txt', source })
    const components = folders.map((folder) => describeComponent(readManifest(folder)))
    this.emitFile({ type: 'asset', fileName: sbomName, source: formatSbom(components) })
  },
}

export const sbomName = 'sbom.cdx.json'

/**
 * Formats a bill of materials. It has no time and no serial number, so that the same sources give
 * the same bytes.
 */
export function formatSbom(components) {
  const byPurl = new Map(components.map((component) => [component.purl, component]))
  const sbom = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { ...describeComponent(own), type: 'application' } },
    components: [...byPurl.keys()].toSorted().map((purl) => byPurl.get(purl)),
  }
  return `${JSON.stringify(sbom)}\n`
}

/** Describes a package of npm; an expression is also what a licence alone is in SPDX. */
export function describeComponent({ name, version, license }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return { type: 'library', name, version, licenses: [{ expression: license }], purl }
}

/** The folders of the packages of which code is in a bundle. */
function findFolders(bundle) {
  const chunks = Object.values(bundle).filter(({ type }) => type === 'chunk')
  const modules = chunks.flatMap((chunk) => Object.entries(chunk.modules))
  const ids = modules.filter(([, { renderedLength }]) => renderedLength > 0).map(([id]) => id)
  return [...new Set(ids.flatMap((id) => packageFolder.exec(id)?.[0] ?? []))]
}

const packageFolder = /.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/

function readManifest(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const { name, version, license } = manifest
  if (typeof license === 'string') return { name, version, license }
  throw new Error(`${name} ${version} names no licence in its package.json`)
}

function formatNotice(folder) {
  const { name, version, license } = readManifest(folder)
  const texts = readLicences(folder, name).map((text) => text.trim())
  if (texts.length === 0)
    texts.push(`The package ${name} carries no text of its licence, which it names as ${license}.`)
  return `${rule}\n${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`
}

const rule = '-'.repeat(80)

/** The same version of a package may be there in two folders. */
function sortUnique(texts) {
  return [...new Set(texts)].toSorted()
}

// The repository of this package has a licence, and what is published has not.
const licencesHere = new Map([['saxes', 'saxes-licence.txt']])

/** Files of their own, or what a README has under "License", if that is more than a name. */
function readLicences(folder, name) {
  const read = (file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n')
  const names = readdirSync(folder)
  const files = names.filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
  if (files.length > 0) return files.map(read)
  const here = licencesHere.get(name)
  if (here !== undefined) return [readFileSync(join(import.meta.dirname, here), 'utf8')]
  const readmes = names.filter((file) => /^readme/i.test(file)).map(read)
  return readmes
    .flatMap((readme) => readme.split(/^#+ */m))
    .filter((section) => /^licen[cs]e\b.*(permission|redistribution)/is.test(section))
    .map((section) => section.replace(/^.*/, ''))
}
