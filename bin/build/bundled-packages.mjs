import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The packages of which code is in a bundle, by name and version.
 *
 * @param {import('rolldown').OutputBundle} bundle
 * @returns {{ name: string, version: string, license: string, folder: string }[]} `license` is an SPDX expression
 */
export function bundledPackages(bundle) {
  const modules = Object.values(bundle).flatMap((file) =>
    file.type === 'chunk' ? Object.entries(file.modules) : [],
  )
  const folders = modules.flatMap(([id, { renderedLength }]) =>
    renderedLength > 0 ? (packageFolder.exec(id)?.[0] ?? []) : [],
  )
  const packages = [...new Set(folders)].map(describe)
  // The same version may be there in two folders.
  return [...new Map(packages.map((entry) => [`${entry.name}@${entry.version}`, entry])).entries()]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, entry]) => entry)
}

const packageFolder = /.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/

function describe(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (typeof license !== 'string')
    throw new Error(`${name} ${version} names no licence in its package.json`)
  return { name, version, license, folder }
}

/** The licences and notices of packages, as one text. */
export function noticesOf(packages) {
  return packages
    .map(
      (entry) =>
        `${rule}\n${entry.name} ${entry.version} (${entry.license})\n\n${licenceTexts(entry)}\n`,
    )
    .join('\n')
}

const rule = '-'.repeat(80)

function licenceTexts({ name, license, folder }) {
  const read = (file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n')
  const files = readdirSync(folder)
  const texts = files.filter((file) => /^(licen[cs]e|copying|notice)/i.test(file)).map(read)
  if (texts.length === 0)
    texts.push(
      ...files.filter((file) => /^readme/i.test(file)).flatMap((file) => sectionsOf(read(file))),
    )
  if (texts.length === 0)
    return `The package ${name} carries no text of its licence, which it names as ${license}.`
  return texts.map((text) => text.trim()).join('\n\n')
}

/** What a README has under the heading "License", if that is more than its name. */
function sectionsOf(readme) {
  const sections = readme.split(/^#+ */m).filter((section) => /^licen[cs]e\b/i.test(section))
  return sections
    .filter((section) => /permission|redistribution/i.test(section))
    .map((text) => text.replace(/^.*/, ''))
}

/** For a bundler: writes the notices of what it has bundled beside it. */
export const thirdPartyNotices = {
  name: 'third-party-notices',
  generateBundle(_, bundle) {
    const source = `plant-store contains code of these packages.\n\n${noticesOf(bundledPackages(bundle))}`
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY.txt', source })
  },
}
