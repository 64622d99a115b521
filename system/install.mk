# SPDX-License-Identifier: GPL-2.0-only
# Where things go: the install targets of the Makefile. See doc/install.md.
#
#   prefix, libdir, mandir, docdir, udevdir, sysctldir, loaddir, mcadir	where to
#   DESTDIR	before all of these, for packages

libdir	?= $(prefix)/lib
mandir	?= $(prefix)/share/man
docdir	?= $(prefix)/share/doc/pvas
udevdir	?= $(prefix)/lib/udev/rules.d
sysctldir ?= $(prefix)/lib/sysctl.d
loaddir	?= $(prefix)/lib/modules-load.d
# The version has one home: pvas.h.
version	:= $(shell sed -n 's/^\#define PVAS_VERSION_M[A-Z]* //p' libpvas/pvas.h | paste -sd.)
dkmsdir	:= /usr/src/pvas-$(version)
moddest	:= /lib/modules/$(KVER)/updates/pvas.ko
# What DKMS needs to build the module
modsrc	:= Makefile system/install.mk Kbuild dkms.conf libpvas/pvas.h $(wildcard kmod/*.[ch] kmod/compat/*.h) \
	   include/uapi/linux/pvas.h
staged	:= $(BUILD)/uninstall

export prefix libdir mandir

.PHONY: install install-btl install-python install-module install-dkms install-load \
	uninstall uninstall-btl uninstall-python uninstall-module

install: libpvas far pvasrun tools scale
	@$(MAKE) -s -C libpvas install
	@$(MAKE) -s -C libpvas/far install
	@$(MAKE) -s -C pvasrun install
	@$(MAKE) -s -C tools/ps install
	@$(MAKE) -s -C tools/gdb install
	@$(MAKE) -s -C tools/memd install
	@$(MAKE) -s -C scale install
	install -D -m 644 include/uapi/linux/pvas.h $(DESTDIR)$(prefix)/include/linux/pvas.h
	install -D -m 644 system/pvas.rules $(DESTDIR)$(udevdir)/60-pvas.rules
	install -D -m 644 system/pvas-sysctl.conf $(DESTDIR)$(sysctldir)/10-pvas.conf
	install -d $(DESTDIR)$(docdir)
	install -m 644 README.md CHANGELOG.md doc/*.md $(DESTDIR)$(docdir)
	for m in man/*.[1-8]; do \
		install -D -m 644 $$m $(DESTDIR)$(mandir)/man$${m##*.}/$${m##*/} || exit 1; \
	done
	$(if $(DESTDIR),,-ldconfig)	# fails where only root may, and that's no matter

# Into Open MPI's own folder, which is not below our prefix: hence apart.
# The components for the Open MPI that is installed here
install-btl: libpvas
	@set -e; parts=$$(scripts/openmpi-parts); \
	for part in $$parts; do $(MAKE) -s -C $$part install; done

# For the interpreter PYTHON: apart, too, because not every machine has its headers.
install-python: python
	@$(MAKE) -s -C python install

install-load:
	install -D -m 644 system/pvas-load.conf $(DESTDIR)$(loaddir)/pvas.conf

install-module: module install-load
	install -D -m 644 $(MODDIR)/pvas.ko $(DESTDIR)$(moddest)
	$(if $(DESTDIR),,depmod $(KVER))

install-dkms: install-load
	for f in $(modsrc); do \
		install -D -m 644 $$f $(DESTDIR)$(dkmsdir)/$$f || exit 1; \
	done

# Removes the files that install would install now, and the folders that only pvas uses.
uninstall:
	@rm -rf $(staged)
	@$(MAKE) -s install DESTDIR=$(staged) >$(BUILD)/uninstall.log
	cd $(staged) && find . ! -type d | sed 's|^\./||' | (cd $(DESTDIR)/ && xargs -d '\n' rm -f)
	-rmdir $(DESTDIR)$(docdir) $(DESTDIR)$(prefix)/share/pvas $(DESTDIR)$(prefix)/lib/pvas
	@rm -rf $(staged) $(BUILD)/uninstall.log

uninstall-btl:
	@rm -rf $(staged)
	@$(MAKE) -s install-btl DESTDIR=$(staged)
	cd $(staged) && find . ! -type d | sed 's|^\./||' | (cd $(DESTDIR)/ && xargs -d '\n' rm -f)
	@rm -rf $(staged)

uninstall-python:
	@rm -rf $(staged)
	@$(MAKE) -s install-python DESTDIR=$(staged)
	cd $(staged) && find . ! -type d | sed 's|^\./||' | (cd $(DESTDIR)/ && xargs -d '\n' rm -f)
	-cd $(DESTDIR)/ && rmdir $$(cd $(staged) && find . -depth -type d -path '*/pvas*')
	@rm -rf $(staged)

uninstall-module:
	rm -f $(DESTDIR)$(moddest) $(DESTDIR)$(loaddir)/pvas.conf
	$(if $(DESTDIR),,depmod $(KVER))
